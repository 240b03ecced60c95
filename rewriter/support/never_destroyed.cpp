// Linked into a shared library, this keeps all its objects of static storage alive: none of their destructors is
// registered. Programs use the libraries until their last moment, from exit handlers and static destructors that were
// registered before the library was loaded, and from threads that go on while the process ends. A handler that a
// library needs is run by a function with the attribute `destructor`, after all of the program's; `std::atexit` has no
// effect in it.
extern "C" __attribute__((visibility("hidden"))) int __cxa_atexit(void (*)(void*), void*, void*) { return 0; }
