#include "interpose/objects/refused_code.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "interpose/base/refusals.h"
#include "rewriter/image/elf_view.h"
#include "rewriter/image/select.h"
#include "rewriter/support/demangle.h"

namespace gridloom::session {
namespace {

constexpr std::size_t kNamed = 3;                // kernels that are named
constexpr unsigned kTold = 3;                    // refusals of a file that are told as errors
constexpr std::uint64_t kMostBytes = 64u << 20;  // of a cubin that is looked into
// Sections with a kernel's code are called so (CUDA Binary Utilities, ELF).
constexpr std::string_view kText = ".text.";
constexpr std::size_t kLongestName = 120;

/// Names as machine code has them.
std::vector<std::string> KernelsOf(const image::ImageSet& images) {
  std::vector<std::string> kernels;
  for (const image::Container& container : images.containers) {
    for (const image::Entry& entry : container.entries) {
      if (entry.kind != image::EntryKind::kCubin) continue;
      const auto bytes = entry.Read(kMostBytes);
      if (!bytes.ok()) continue;
      const auto view = image::ReadElf(image::Bytes(reinterpret_cast<const std::byte*>(bytes->data()), bytes->size()));
      if (!view.ok()) continue;
      for (const image::ElfSection& section : view->sections) {
        if (section.name.starts_with(kText)) kernels.emplace_back(section.name.substr(kText.size()));
      }
      break;  // the same kernels for each architecture
    }
  }
  return kernels;
}

std::string Readable(std::string_view kernel) { return DemangledName(kernel).substr(0, kLongestName); }

/// " It is in libcudnn_cnn.so.9 and has the kernels gemm_a, gemm_b and 12 more. …", as sentences to append. Empty:
/// nothing is known.
std::string WhoseCode(const std::string& file, const std::vector<std::string>& kernels) {
  std::string said;
  for (std::size_t i = 0; i < std::min(kernels.size(), kNamed); ++i)
    said += (i == 0 ? "" : ", ") + Readable(kernels[i]);
  if (kernels.size() > kNamed) said += " and " + std::to_string(kernels.size() - kNamed) + " more";
  if (!said.empty()) said = (kernels.size() == 1 ? "the kernel " : "the kernels ") + said;
  if (file.empty()) return said.empty() ? "" : ". It has " + said;
  std::string text = ". It is in " + file + (said.empty() ? "" : " and has " + said);
  if (file.find(".so") != std::string::npos)
    text +=
        ". A library that comes built can only be rebuilt by its makers: take a device that it has PTX for (`gridloom "
        "inspect " +
        file + "` says which) or another version of it; docs/compatibility.md says what runs of it";
  return text;
}

}  // namespace

std::string FileOf(const void* data) {
  Dl_info info{};
  if (dladdr(data, &info) == 0 || info.dli_fname == nullptr) return {};
  return std::filesystem::path(info.dli_fname).filename().string();
}

LogLevel LevelOfRefusal(const std::string& file, std::string* message) {
  static std::mutex mutex;
  static auto* const told = new std::map<std::string, unsigned>;  // programs are refused code while they end, too
  if (file.empty()) return LogLevel::kError;
  const std::lock_guard lock(mutex);
  const unsigned number = ++(*told)[file];
  if (number == kTold) *message += ". What else of " + file + " has no PTX is told with --log info only";
  return number <= kTold ? LogLevel::kError : LogLevel::kInfo;
}

RefusedCode::RefusedCode(const void* data, const image::ImageSet& images, ComputeCapability device, std::string why)
    : file_(FileOf(data)),
      kernels_(KernelsOf(images)),
      has_machine_code_(image::HasMachineCode(images, device)),
      message_(std::move(why) + WhoseCode(file_, kernels_)) {}

void RefusedCode::Tell(std::string_view kernel) const {
  NoteRefused(kernel.empty() ? RefusedKind::kModule : RefusedKind::kKernel, kernel, message_, file_);
  if (told_.exchange(true)) return;
  std::string message = (kernel.empty() ? "" : "kernel " + Readable(kernel) + " cannot run: ") + message_;
  const LogLevel level = LevelOfRefusal(file_, &message);
  if (LogEnabled(level)) LogFormat(level, "%s", message.c_str());
}

}  // namespace gridloom::session
