// gridloom rewrite: runs passes over the PTX of a file, and makes kernels without PTX ready for slices.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "interpose/launcher/commands.h"
#include "interpose/launcher/inspect/report.h"
#include "interpose/launcher/rewrite/machine_slices.h"
#include "interpose/launcher/rewrite/text_diff.h"
#include "rewriter/image/edit.h"
#include "rewriter/image/select.h"
#include "rewriter/image/vendor.h"
#include "rewriter/passes/launch_fills.h"
#include "rewriter/passes/part.h"
#include "rewriter/passes/pipeline.h"
#include "rewriter/passes/registry.h"
#include "rewriter/ptx/linker.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/verifier.h"
#include "rewriter/support/demangle.h"
#include "rewriter/support/json.h"
#include "rewriter/support/terminal.h"
#include "rewriter/support/whole_file.h"
#include "sim/device/device_files.h"

namespace gridloom::launcher {
namespace {

using Json = nlohmann::ordered_json;
using passes::KernelStatus;

/// One module and what became of it.
struct Piece {
  std::string name;  ///< for messages: the file, or a part of it
  std::string before;
  std::string after;
  passes::Rewritten rewritten;
};

Result<std::unique_ptr<ptx::Module>> Parse(const std::string& name, const std::string& text) {
  DiagnosticSink sink;
  auto module = ptx::ParseModule(text, sink);
  if (!sink.has_errors()) ptx::VerifyModule(*module, sink);
  if (sink.has_errors()) return Error{"the PTX has errors\n" + FormatDiagnostics(sink, name, text)};
  return module;
}

/// The modules as one. What none of them defines is left to whoever loads the result.
Result<std::unique_ptr<ptx::Module>> Joined(std::vector<ptx::LinkInput> modules) {
  if (modules.size() == 1) return std::move(modules.front().module);
  return ptx::LinkModules(std::move(modules), [](std::string_view) { return true; });
}

class Rewriting {
 public:
  explicit Rewriting(passes::Pipeline pipeline) : pipeline_(std::move(pipeline)) {}

  /// `in_program`: a program launches the kernels, with their own parameters.
  Result<const Piece*> Add(const std::string& name, const ptx::Module& module, bool in_program = false,
                           image::PtxRole role = image::PtxRole::kModule) {
    GL_TRY(rewritten,
           role == image::PtxRole::kPart ? passes::RunOnPart(pipeline_, module) : passes::Run(pipeline_, module));
    const auto has_hidden = [](const passes::KernelOutcome& kernel) { return !kernel.hidden.empty(); };
    if (in_program && std::ranges::any_of(rewritten.kernels, has_hidden)) {
      passes::MarkLaunchFills(*rewritten.module);
      launch_fills_ = true;
    }
    Piece piece{name, ptx::PrintModule(module), ptx::PrintModule(*rewritten.module), std::move(rewritten)};
    return &pieces_.emplace_back(std::move(piece));
  }
  Result<const Piece*> AddText(const std::string& name, const std::string& text) {
    GL_TRY(module, Parse(name, text));
    return Add(name, *module);
  }

  /// Kernels that no PTX of the file runs in the place of get sliced forms.
  image::CodeEdit SliceCode(const std::string& file) { return SliceMachineCode(file, code_); }

  const std::deque<Piece>& pieces() const { return pieces_; }
  const std::deque<CodePiece>& code() const { return code_; }
  const passes::Pipeline& pipeline() const { return pipeline_; }
  /// Programs with kernels that want parameters which they do not pass.
  bool launch_fills() const { return launch_fills_; }

 private:
  passes::Pipeline pipeline_;
  bool launch_fills_ = false;
  std::deque<Piece> pieces_;
  std::deque<CodePiece> code_;
};

std::string_view TextOf(KernelStatus status) {
  switch (status) {
    case KernelStatus::kUnchanged: return "unchanged";
    case KernelStatus::kChanged: return "changed";
    case KernelStatus::kRefused: return "refused";
  }
  return "";
}

std::string Place(const passes::KernelOutcome& kernel) {
  return kernel.loc.line == 0 ? "" : " (line " + std::to_string(kernel.loc.line) + ")";
}

/// "line 12: changed, unless the launch goes into …", or why not.
std::string PlaceLine(const passes::PlaceReport& place) {
  std::string text = "line " + std::to_string(place.loc.line) + (place.changed ? ": changed" : ": not changed");
  if (!place.reason.empty()) text += (place.changed ? ", unless " : ": ") + place.reason;
  return text;
}

std::string OutcomeText(const Piece& piece) {
  Table table({"", "kernel", "appended parameters, or why not"});
  for (const passes::KernelOutcome& kernel : piece.rewritten.kernels) {
    std::string what;
    for (const passes::HiddenParam& hidden : kernel.hidden)
      (what += what.empty() ? "" : " ") += passes::Info(hidden.role).text;
    if (kernel.status == KernelStatus::kRefused) what = kernel.refused_by + ": " + kernel.reason + Place(kernel);
    table.Add({std::string(TextOf(kernel.status)), DemangledName(kernel.kernel), what});
    // A kernel that was refused as a whole has said why.
    for (const passes::PlaceReport& place : kernel.places) {
      if (kernel.status != KernelStatus::kRefused || kernel.places.size() > 1) table.Add({"", "", PlaceLine(place)});
    }
  }
  for (const passes::AddedKernel& kernel : piece.rewritten.added)
    table.Add({"added", kernel.name, kernel.purpose + " of " + DemangledName(kernel.of)});
  return Coloured(Colour::kBold, piece.name) + "\n" + table.Text(2);
}

Json HiddenJson(const std::vector<passes::HiddenParam>& params) {
  Json json = Json::array();
  for (const passes::HiddenParam& hidden : params) {
    const auto& info = passes::Info(hidden.role);
    json.push_back({{"role", info.text}, {"offset", hidden.offset}, {"bytes", info.bytes}, {"meaning", info.meaning}});
  }
  return json;
}

Json PieceJson(const Piece& piece) {
  Json kernels = Json::array(), added = Json::array();
  for (const passes::KernelOutcome& kernel : piece.rewritten.kernels) {
    Json json{{"name", kernel.kernel}, {"demangled", DemangledName(kernel.kernel)}, {"status", TextOf(kernel.status)}};
    if (kernel.status == KernelStatus::kRefused) {
      json["refused_by"] = kernel.refused_by;
      json["reason"] = kernel.reason;
      if (kernel.loc.line != 0) json["line"] = kernel.loc.line;
    }
    json["parameters"] = HiddenJson(kernel.hidden);
    for (const passes::PlaceReport& place : kernel.places) {
      Json at{{"function", place.function}, {"line", place.loc.line}, {"changed", place.changed}};
      if (!place.reason.empty()) at[place.changed ? "unless" : "reason"] = place.reason;
      json["places"].push_back(std::move(at));
    }
    kernels.push_back(std::move(json));
  }
  for (const passes::AddedKernel& kernel : piece.rewritten.added) {
    added.push_back({{"name", kernel.name},
                     {"of", kernel.of},
                     {"purpose", kernel.purpose},
                     {"parameters", HiddenJson(kernel.hidden)}});
  }
  return {{"name", piece.name}, {"kernels", kernels}, {"added", added}};
}

Status WriteFile(const std::filesystem::path& path, std::string_view bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return Error{"cannot write " + path.string() + ": " + std::strerror(errno)};
  int problem = WriteWhole(file, bytes);
  if (close(file) != 0 && problem == 0) problem = errno;
  if (problem == 0) return {};
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error))
    std::filesystem::remove(path, error);  // a part of a program is none
  return Error{"cannot write " + path.string() + ": " + std::strerror(problem)};
}

std::string PassNames() {
  std::string names;
  for (const auto& pass : passes::AllPasses()) (names += names.empty() ? "" : ", ") += std::string(pass->name());
  return names;
}

class Rewrite final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.add_option("file", file_, "PTX, fat binary, program or library")->required()->type_name("");
    app.add_option("--pass,-p", passes_, "passes, in their order: " + PassNames())->type_name("A,B…");
    app.add_flag("--slice", slice_, "the same as --pass slice");
    app.add_flag("--slice-machine-code", slice_code_,
                 "with --slice: put a sliced form beside each kernel that has no PTX");
    app.add_flag("--slice-libraries", slice_libraries_,
                 "with --slice-machine-code: of NVIDIA's libraries, too, which are left alone without it");
    app.add_option("--output,-o", output_, "where to write; `-` for stdout")->type_name("OUT");
    app.add_option("--device,-d", device_, "with --ptx: rewrite the PTX that this device runs")->type_name("NAME|FILE");
    app.add_flag("--ptx", only_ptx_, "write only the PTX; of a file with several modules OUT.1.ptx, OUT.2.ptx, …");
    app.add_flag("--diff", diff_, "show what changed, as a unified diff");
    app.add_flag("--json", json_, "print what became of each kernel as JSON");
  }

  int Run() override {
    if (const auto wrong = WhatIsWrong()) return Fail(*wrong);
    auto pipeline = passes::Pipeline::Parse(slice_ ? "slice" : passes_);
    if (!pipeline.ok()) return Fail(pipeline.error().message);
    Rewriting rewriting(std::move(pipeline).value());
    if (const Status status = Work(rewriting); !status.ok()) return Fail(file_ + ": " + status.error().message);
    Show(rewriting);
    return kExitOk;
  }

 private:
  std::optional<std::string> WhatIsWrong() const {
    if (output_ == "-" && (diff_ || json_))
      return "-o - and " + std::string(diff_ ? "--diff" : "--json") + " both want stdout";
    if (passes_.empty() && !slice_) return "it wants passes: --pass or --slice";
    if (!passes_.empty() && slice_) return "--slice is a pass: leave it out, or name it among those of --pass";
    if (slice_code_ && !slice_) return "--slice-machine-code is for slices: add --slice";
    if (slice_code_ && only_ptx_) return "--ptx writes no machine code: leave out --slice-machine-code";
    if (slice_libraries_ && !slice_code_) return "--slice-libraries is for machine code: add --slice-machine-code";
    return std::nullopt;
  }
  /// NVIDIA's libraries are left as they are unless somebody says so.
  bool IsLeftAlone() const { return slice_code_ && !slice_libraries_ && image::IsVendorLibrary(file_); }
  Status Work(Rewriting& rewriting) {
    GL_TRY(set, image::ReadImageFile(file_));
    if (set.containers.empty()) return Error{"there is no device code in it"};
    if (only_ptx_ || set.format == image::Format::kPtx) return WorkOnPtx(set, rewriting);
    // Whoever has a fat binary of its own launches from it what it likes.
    return WorkOnFile(rewriting, set.format != image::Format::kFatbin);
  }
  Status WorkOnPtx(const image::ImageSet& set, Rewriting& rewriting);
  Status WorkOnFile(Rewriting& rewriting, bool in_program);
  Status WritePtx(const Rewriting& rewriting);
  Result<ComputeCapability> Capability(const image::ImageSet& set) const;
  void Show(const Rewriting& rewriting) const;

  std::string file_, passes_, output_, device_;
  bool only_ptx_ = false, diff_ = false, json_ = false;
  bool slice_ = false, slice_code_ = false, slice_libraries_ = false;
};

Result<ComputeCapability> Rewrite::Capability(const image::ImageSet& set) const {
  constexpr ComputeCapability kDefault{9, 0};
  if (device_.empty()) return image::FittingCapability(set, kDefault).value_or(kDefault);
  GL_TRY(device, sim::LoadDevice(device_));
  return device.compute_capability;
}

// Each container is a module of its own; the parts of a separately compiled program are linked first.
Status Rewrite::WorkOnPtx(const image::ImageSet& set, Rewriting& rewriting) {
  GL_TRY(capability, Capability(set));
  std::vector<ptx::LinkInput> parts;
  for (std::size_t i = 0; i < set.containers.size(); ++i) {
    const image::Entry* const entry = image::SelectPtx(set.containers[i], capability);
    if (entry == nullptr) continue;
    GL_TRY(text, entry->Read());
    const std::string name = set.format == image::Format::kPtx ? file_ : file_ + ", container " + std::to_string(i + 1);
    if (set.containers[i].relocatable) {
      GL_TRY(module, Parse(name, text));
      parts.push_back({name, std::move(module)});
      continue;
    }
    GL_TRY(piece, rewriting.AddText(name, text));
    static_cast<void>(piece);
  }
  if (!parts.empty()) {
    GL_TRY(linked, Joined(std::move(parts)));
    GL_TRY(piece, rewriting.Add(file_ + ", linked", *linked));
    static_cast<void>(piece);
  }
  if (rewriting.pieces().empty()) return Error{"it has no PTX for compute capability " + capability.text()};
  return WritePtx(rewriting);
}

Status Rewrite::WritePtx(const Rewriting& rewriting) {
  if (output_.empty()) return {};
  const auto& pieces = rewriting.pieces();
  if (output_ == "-") {
    for (const Piece& piece : pieces) PrintData(piece.after);
    return {};
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::filesystem::path path = output_;
    if (pieces.size() > 1) path.replace_extension("." + std::to_string(i + 1) + ".ptx");
    GL_TRY_STATUS(WriteFile(path, pieces[i].after));
  }
  return {};
}

Status Rewrite::WorkOnFile(Rewriting& rewriting, bool in_program) {
  GL_TRY(bytes, ReadWholeFile(file_));
  std::size_t number = 0;
  const auto edit = [&](const auto& parts, image::PtxRole role) -> Result<std::optional<std::string>> {
    const std::string name = file_ + ", PTX " + std::to_string(++number) + " for " + parts.back()->arch.text();
    std::vector<ptx::LinkInput> modules;
    for (const image::Entry* part : parts) {
      GL_TRY(text, part->Read());
      GL_TRY(module, Parse(name, text));
      modules.push_back({name, std::move(module)});
    }
    GL_TRY(module, Joined(std::move(modules)));
    GL_TRY(piece, rewriting.Add(name, *module, in_program, role));
    return piece->after == piece->before ? std::optional<std::string>() : piece->after;
  };
  const bool code = slice_code_ && !IsLeftAlone();
  GL_TRY(edited, image::EditImages(image::AsBytes(bytes), edit, code ? rewriting.SliceCode(file_) : image::CodeEdit()));
  if (output_.empty()) return {};
  const std::string_view out = image::AsText(edited);
  if (output_ == "-") {
    PrintData(out);
    return {};
  }
  GL_TRY_STATUS(WriteFile(output_, out));
  std::error_code ignored;  // a program that may be run before may be run after
  std::filesystem::permissions(output_, std::filesystem::status(file_, ignored).permissions(), ignored);
  return {};
}

void Rewrite::Show(const Rewriting& rewriting) const {
  if (json_) {
    Json json{{"file", file_}, {"passes", rewriting.pipeline().text()}, {"modules", Json::array()}};
    if (!output_.empty()) json["output"] = output_;
    for (const Piece& piece : rewriting.pieces()) json["modules"].push_back(PieceJson(piece));
    if (diff_) {
      for (std::size_t i = 0; i < rewriting.pieces().size(); ++i) {
        const Piece& piece = rewriting.pieces()[i];
        json["modules"][i]["diff"] =
            UnifiedDiff(piece.before, piece.after, piece.name, piece.name + " after " + rewriting.pipeline().text());
      }
    }
    for (const CodePiece& piece : rewriting.code()) json["machine_code"].push_back(OutcomeJson(piece));
    Print(JsonText(json, 2) + "\n");
    return;
  }
  if (output_ == "-") return;
  for (const Piece& piece : rewriting.pieces()) {
    Print(diff_
              ? UnifiedDiff(piece.before, piece.after, piece.name, piece.name + " after " + rewriting.pipeline().text())
              : OutcomeText(piece));
  }
  for (const CodePiece& piece : rewriting.code()) {
    if (!piece.problem.empty() || !piece.kernels.empty()) Print(OutcomeText(piece));
  }
  if (IsLeftAlone()) Print("the machine code of NVIDIA's libraries stays as it is (--slice-libraries)\n");
  if (rewriting.launch_fills() && !output_.empty())
    Print(
        output_ +
        " runs under `gridloom run`, which fills in the appended parameters; another driver would not know of them\n");
}

}  // namespace

std::unique_ptr<Command> MakeRewrite() { return std::make_unique<Rewrite>(); }

}  // namespace gridloom::launcher
