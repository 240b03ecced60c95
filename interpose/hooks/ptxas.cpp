// The toolkit's assembler as a child of the program: Triton, XLA (JAX) and others write PTX to a file, run ptxas on it,
// and load the cubin. The shim is preloaded into that ptxas, too, and puts the PTX into the cubin
// (rewriter/image/kept_ptx.h) once it has been written and ptxas ends well; the module-loading functions find it there.
#include "interpose/hooks/ptxas.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interpose/base/log.h"
#include "interpose/objects/assembler_options.h"
#include "interpose/real/driver.h"
#include "rewriter/image/kept_ptx.h"
#include "rewriter/image/ptx_text.h"
#include "rewriter/support/whole_file.h"

namespace gridloom::hooks {
namespace {

using session::LogLevel;

std::vector<std::string> Arguments() {
  std::vector<std::string> arguments;
  const auto read = ReadWholeFile("/proc/self/cmdline");
  const std::string all = read.ok() ? *read : "";
  for (std::size_t at = 0; at < all.size(); at += arguments.back().size() + 1) arguments.emplace_back(all.c_str() + at);
  return arguments;
}

/// `-o FILE`, `-o=FILE`, `-oFILE` and the long form; ptxas writes elf.o otherwise.
std::string OutputOf(const std::vector<std::string>& arguments) {
  std::string output = "elf.o";
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    for (const std::string_view option : {"--output-file", "-output-file", "-o"}) {
      std::string_view rest = arguments[i];
      if (!rest.starts_with(option)) continue;
      rest.remove_prefix(option.size());
      if (rest.empty() && i + 1 < arguments.size()) output = arguments[i + 1];
      else if (rest.starts_with('=')) output = rest.substr(1);
      else if (option == "-o" && !rest.starts_with("pt")) output = rest;  // not -opt-level
      break;
    }
  }
  return output;
}

/// The one argument that names a file of PTX; nothing when there are several.
std::optional<std::string> InputOf(const std::vector<std::string>& arguments) {
  std::optional<std::string> found;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i].empty() || arguments[i][0] == '-') continue;
    auto text = ReadWholeFile(arguments[i]);
    if (!text.ok() || !image::ReadPtxHeader(*text)) continue;
    if (found) return std::nullopt;
    found = *std::move(text);
  }
  return found;
}

/// Replaces the file by one that is complete at every moment.
bool Replace(const std::string& name, const std::vector<std::byte>& bytes) {
  const std::string temporary = name + ".gridloom" + std::to_string(getpid());
  std::ofstream file(temporary, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file && rename(temporary.c_str(), name.c_str()) == 0) return true;
  unlink(temporary.c_str());
  return false;
}

void KeepInput() {
  const std::vector<std::string> arguments = Arguments();
  const std::string output = OutputOf(arguments);
  const auto ptx = InputOf(arguments);
  const auto cubin = ReadWholeFile(output);
  if (!ptx || !cubin.ok()) return;  // several inputs, or nothing was to be written
  const auto kept = image::KeepPtx(image::AsBytes(*cubin), session::WithAssemblerOptions(*ptx, arguments));
  if (!kept.ok()) {
    session::LogFormat(LogLevel::kInfo, "%s: the PTX is not kept in it: %s", output.c_str(),
                       kept.error().message.c_str());
  } else if (!Replace(output, *kept)) {
    session::LogFormat(LogLevel::kWarn, "%s: cannot keep the PTX in it: %s; the program will find no PTX there",
                       output.c_str(), std::strerror(errno));
  }
}

void AtEnd(int status, void*) {
  if (status == 0 && api::CurrentMode() != api::Mode::kReal) KeepInput();
}

}  // namespace

void WatchAssembler() {
  // "ptxas-blackwell" is Triton's second one.
  if (std::string_view(program_invocation_short_name).starts_with("ptxas")) on_exit(AtEnd, nullptr);
}

}  // namespace gridloom::hooks
