#include "interpose/hooks/driver_library.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace gridloom::hooks {
namespace {

constexpr std::string_view kLibrary = "libgridloom-driver.so";
constexpr std::string_view kDriverNames[] = {"libcuda.so", "libcuda.so.1", "libnvidia-ml.so", "libnvidia-ml.so.1"};

/// What the dynamic section of a loaded object says. The loader has made addresses of its offsets, but for its own and
/// the kernel's.
class DynamicSection {
 public:
  DynamicSection(ElfW(Addr) base, const ElfW(Dyn) * section) : base_(base), section_(section) {}

  const ElfW(Dyn) * Find(ElfW(Sxword) tag) const {
    for (const ElfW(Dyn)* entry = section_; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == tag) return entry;
    }
    return nullptr;
  }
  const char* strings() const {
    const ElfW(Dyn)* const entry = Find(DT_STRTAB);
    return entry != nullptr ? static_cast<const char*>(Address(entry->d_un.d_ptr)) : nullptr;
  }
  const void* At(ElfW(Sxword) tag) const {
    const ElfW(Dyn)* const entry = Find(tag);
    return entry != nullptr ? Address(entry->d_un.d_ptr) : nullptr;
  }
  bool NeedsDriver() const {
    const char* const names = strings();
    if (names == nullptr) return false;
    for (const ElfW(Dyn)* entry = section_; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_NEEDED &&
          std::ranges::find(kDriverNames, std::string_view(names + entry->d_un.d_val)) != std::end(kDriverNames))
        return true;
    }
    return false;
  }

 private:
  const void* Address(ElfW(Addr) value) const {
    return reinterpret_cast<const void*>(value < base_ ? base_ + value : value);
  }
  ElfW(Addr) base_;
  const ElfW(Dyn) * section_;
};

const ElfW(Dyn) * SectionOf(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC)
      return reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
  }
  return nullptr;
}

/// Preloaded libraries come before those that anybody is linked with, and everybody is with the C library.
bool IsPreloaded(const link_map& shim) {
  for (const link_map* before = shim.l_prev; before != nullptr; before = before->l_prev) {
    if (std::strstr(before->l_name, "/libc.so.") != nullptr) return false;
  }
  return true;
}

bool SomebodyIsLinkedWithTheDriver() {
  const auto look = [](dl_phdr_info* info, std::size_t, void*) {
    const ElfW(Dyn)* const section = SectionOf(*info);
    return section != nullptr && DynamicSection(info->dlpi_addr, section).NeedsDriver() ? 1 : 0;
  };
  return dl_iterate_phdr(look, nullptr) != 0;
}

/// Symbols of a GNU hash table: those that it has no entry for come first, and the last chain ends the table.
std::size_t SymbolCount(const std::uint32_t* table) {
  const std::uint32_t buckets = table[0], first = table[1], words = table[2];
  const std::uint32_t* const heads = table + 4 + words * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < buckets; ++i) last = std::max(last, heads[i]);
  if (last < first) return first;
  const std::uint32_t* const chains = heads + buckets;
  while ((chains[last - first] & 1) == 0) ++last;
  return last + 1;
}

const DriverFunction* FindFunction(const char* name) {
  const DriverFunction* const end = kDriverFunctions + kDriverFunctionCount;
  const DriverFunction* const found =
      std::lower_bound(kDriverFunctions, end, name,
                       [](const DriverFunction& one, const char* wanted) { return std::strcmp(one.name, wanted) < 0; });
  return found != end && std::strcmp(found->name, name) == 0 ? found : nullptr;
}

/// Makes memory of the shim's image writable as long as it lives.
class Writable {
 public:
  Writable(const void* data, std::size_t bytes) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto from = reinterpret_cast<std::uintptr_t>(data);
    begin_ = from / page * page;
    bytes_ = (from + bytes - begin_ + page - 1) / page * page;
    ok_ = mprotect(reinterpret_cast<void*>(begin_), bytes_, PROT_READ | PROT_WRITE) == 0;
  }
  ~Writable() {
    if (ok_) mprotect(reinterpret_cast<void*>(begin_), bytes_, PROT_READ);
  }
  Writable(const Writable&) = delete;
  Writable& operator=(const Writable&) = delete;
  bool ok() const { return ok_; }

 private:
  std::uintptr_t begin_ = 0;
  std::size_t bytes_ = 0;
  bool ok_ = false;
};

/// The shim's own image: what the loader reads of it when it looks a name up.
struct Image {
  link_map* map = nullptr;
  ElfW(Sym) * symbols = nullptr;
  std::size_t count = 0;
  char* soname = nullptr;
  const char* strings = nullptr;
};

bool FindImage(Image* image) {
  Dl_info info{};
  void* map = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(&HideDriverNames), &info, &map, RTLD_DL_LINKMAP) == 0) return false;
  image->map = static_cast<link_map*>(map);
  const DynamicSection dynamic(image->map->l_addr, image->map->l_ld);
  const auto* const hash = static_cast<const std::uint32_t*>(dynamic.At(DT_GNU_HASH));
  const void* const symbols = dynamic.At(DT_SYMTAB);
  const ElfW(Dyn)* const soname = dynamic.Find(DT_SONAME);
  image->strings = dynamic.strings();
  if (hash == nullptr || symbols == nullptr || soname == nullptr || image->strings == nullptr) return false;
  image->symbols = static_cast<ElfW(Sym)*>(const_cast<void*>(symbols));
  image->count = SymbolCount(hash);
  image->soname = const_cast<char*>(image->strings) + soname->d_un.d_val;
  return true;
}

/// Takes the names out of what the loader sees, or puts them back: it takes a symbol without a value for one that is
/// not defined, and an empty SONAME for no library's.
bool Show(const Image& image, bool shown) {
  const Writable symbols(image.symbols, image.count * sizeof(ElfW(Sym)));
  const Writable soname(image.soname, 1);
  if (!symbols.ok() || !soname.ok()) return false;
  for (std::size_t i = 0; i < image.count; ++i) {
    ElfW(Sym)& symbol = image.symbols[i];
    if (symbol.st_shndx == SHN_UNDEF) continue;
    const DriverFunction* const found = FindFunction(image.strings + symbol.st_name);
    if (found != nullptr)
      symbol.st_value = shown ? reinterpret_cast<ElfW(Addr)>(found->function) - image.map->l_addr : 0;
  }
  *image.soname = shown ? kDriverNames[1].front() : '\0';
  return true;
}

/// Whoever asks for the driver by its name gets that library: not so if somebody has opened the shim under it already.
bool StandsForDriver(void* library) {
  void* const found = dlopen(kDriverNames[1].data(), RTLD_LAZY | RTLD_NOLOAD);
  if (found != nullptr) dlclose(found);
  return found == library;
}

/// The handles under which programs get the driver once its names are hidden; null before.
void *g_shim = nullptr, *g_library = nullptr;

}  // namespace

void HideDriverNames() {
  Image image;
  if (!FindImage(&image) || !IsPreloaded(*image.map) || SomebodyIsLinkedWithTheDriver()) return;
  const std::string file = image.map->l_name;
  void* const library =
      dlopen((file.substr(0, file.rfind('/') + 1) + std::string(kLibrary)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;  // a shim that stands alone goes on as it is
  if (!Show(image, false)) return;
  if (!StandsForDriver(library)) {
    Show(image, true);
    return;
  }
  g_shim = image.map;
  g_library = library;
}

void* HiddenDriverFunction(void* handle, const char* name) {
  if (g_library == nullptr || (handle != g_library && handle != g_shim)) return nullptr;
  const DriverFunction* const found = FindFunction(name);
  return found != nullptr ? reinterpret_cast<void*>(found->function) : nullptr;
}

}  // namespace gridloom::hooks

extern "C" __attribute__((visibility("default"))) const gridloom::hooks::DriverFunction* gridloomDriverFunctions() {
  return gridloom::hooks::kDriverFunctions;
}
