// nvPTXCompiler's functions as a library has them: what it "compiles" is a cubin without code.
#include <elf.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Compiler {
  std::string ptx;
  std::vector<char> program;
};

std::vector<char> CubinWithoutCode() {
  static constexpr char kNames[] = "\0.shstrtab";
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_ident[EI_OSABI] = 0x33;
  header.e_type = ET_EXEC;
  header.e_machine = 190;
  header.e_version = EV_CURRENT;
  header.e_flags = 0x4b054b;  // sm_75, 64-bit addresses
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 2;
  header.e_shstrndx = 1;
  Elf64_Shdr sections[2]{};
  sections[1].sh_name = 1;
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = sizeof header;
  sections[1].sh_size = sizeof kNames;
  header.e_shoff = (sizeof header + sizeof kNames + 7) / 8 * 8;
  std::vector<char> file(header.e_shoff + sizeof sections);
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + sizeof header, kNames, sizeof kNames);
  std::memcpy(file.data() + header.e_shoff, sections, sizeof sections);
  return file;
}

}  // namespace

extern "C" {

int nvPTXCompilerCreate(void** compiler, std::size_t bytes, const char* ptx) {
  if (compiler == nullptr || ptx == nullptr) return 2;
  *compiler = new Compiler{{ptx, bytes}, {}};
  return 0;
}

int nvPTXCompilerCompile(void* compiler, int, const char* const*) {
  auto& self = *static_cast<Compiler*>(compiler);
  if (self.ptx.find(".version") == std::string::npos) return 3;
  self.program = CubinWithoutCode();
  return 0;
}

int nvPTXCompilerGetCompiledProgramSize(void* compiler, std::size_t* bytes) {
  *bytes = static_cast<Compiler*>(compiler)->program.size();
  return *bytes == 0 ? 7 : 0;
}

int nvPTXCompilerGetCompiledProgram(void* compiler, void* program) {
  const auto& from = static_cast<Compiler*>(compiler)->program;
  std::memcpy(program, from.data(), from.size());
  return from.empty() ? 7 : 0;
}

int nvPTXCompilerDestroy(void** compiler) {
  delete static_cast<Compiler*>(*compiler);
  *compiler = nullptr;
  return 0;
}

}  // extern "C"
