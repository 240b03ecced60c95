#include "interpose/hooks/answer.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <string>

namespace gridloom::hooks {

Dlsym RealDlsym() {
  static const auto real = reinterpret_cast<Dlsym>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
  return real;
}

void* LoadedFunction(const char* library, const char* name) {
  struct Search {
    const char* part;
    std::string path;
  } search{library, {}};
  const auto look = [](dl_phdr_info* info, std::size_t, void* data) {
    auto& wanted = *static_cast<Search*>(data);
    if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, wanted.part) == nullptr) return 0;
    wanted.path = info->dlpi_name;
    return 1;
  };
  dl_iterate_phdr(look, &search);
  void* const handle = search.path.empty() ? nullptr : dlopen(search.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* const function = RealDlsym()(handle, name);
  dlclose(handle);  // whoever loaded it keeps it
  return function;
}

}  // namespace gridloom::hooks
