# Writes a C++ header with NAMESPACE::SYMBOL, a hash of the contents of FILES in their order.
set(hashes "")
foreach(file ${FILES})
  file(SHA256 ${file} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT} "#pragma once\nnamespace ${NAMESPACE} {\ninline constexpr char ${SYMBOL}[] = \"${hash}\";\n}\n")
