// The driver's functions by name, for probes that are linked without it.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

template <class Function>
Function Find(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  void* const function = library != nullptr ? dlsym(library, name) : nullptr;
  if (function == nullptr) std::fprintf(stderr, "no %s in libcuda.so.1\n", name), std::exit(1);
  return reinterpret_cast<Function>(function);
}
