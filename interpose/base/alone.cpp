// Nothing: a library of one room and of what it may use (interpose/CMakeLists.txt).
