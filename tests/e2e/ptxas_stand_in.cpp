// Plays the toolkit's assembler where there is none: reads a file of PTX and writes a cubin without kernels. `ptxas IN
// -o OUT`; with
// `--fail` it writes the file and then ends badly.
#include <elf.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

int main(int count, char** arguments) {
  std::string output = "elf.o";
  bool fail = false;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "-o") == 0 && i + 1 < count) output = arguments[++i];
    else if (std::strcmp(arguments[i], "--fail") == 0) fail = true;
  }
  // Header, the names "\0.shstrtab\0", then two sections: none, and the names.
  constexpr char kNames[] = "\0.shstrtab";
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_ABIVERSION] = 8;
  header.e_type = ET_EXEC;
  header.e_machine = 190;
  header.e_flags = 90 << 8;
  header.e_ehsize = sizeof(header);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 2;
  header.e_shstrndx = 1;
  header.e_shoff = sizeof(header) + sizeof(kNames);
  Elf64_Shdr sections[2] = {};
  sections[1].sh_name = 1;
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = sizeof(header);
  sections[1].sh_size = sizeof(kNames);
  std::ofstream file(output, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&header), sizeof(header));
  file.write(kNames, sizeof(kNames));
  file.write(reinterpret_cast<const char*>(sections), sizeof(sections));
  file.close();
  return file && !fail ? 0 : 1;
}
