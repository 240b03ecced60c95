// gridloom inspect: what is in a file of device code.
#include <algorithm>

#include "interpose/launcher/commands.h"
#include "interpose/launcher/inspect/check.h"
#include "interpose/launcher/inspect/lowered.h"
#include "interpose/launcher/inspect/machine_code.h"
#include "interpose/launcher/inspect/show.h"
#include "rewriter/support/terminal.h"
#include "sim/device/device_files.h"

namespace gridloom::launcher {
namespace {

class Inspect final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.add_option("file", file_, "program, shared library, object file, fat binary, cubin or PTX")
        ->required()
        ->type_name("");
    app.add_option("--device,-d", device_, "show the PTX that this device runs")->type_name("NAME|FILE");
    app.add_option("--kernel,-k", view_.kernel, "only kernels whose name contains this, with details")
        ->type_name("TEXT");
    app.add_flag("--brief", brief_, "how much of what is there, without reading it; quick for the largest libraries")
        ->excludes(app.get_option("--kernel"));
    app.add_flag("--details", view_.details, "a paragraph per kernel: parameters with offsets, and all else");
    app.add_flag("--check", check_, "verify the PTX and compile each kernel; say which are refused and why");
    app.add_option("--lowered", lowered_, "beside the PTX what this device executes in its place, block by block")
        ->type_name("NAME|FILE");
    app.add_option("--machine-code", machine_code_,
                   "the machine code of kernels whose name contains this; of --device's architecture, if given")
        ->type_name("KERNEL");
    app.add_flag("--json", json_, "print JSON, with all details");
  }

  int Run() override {
    std::optional<ComputeCapability> capability;
    if (!device_.empty()) {
      const auto device = sim::LoadDevice(device_);
      if (!device.ok()) return Fail(device.error().message);
      capability = device->compute_capability;
    }
    if (brief_ && (check_ || view_.details)) return Fail("--brief does not go together with --check and --details");
    if (!lowered_.empty() && (brief_ || json_))
      return Fail("--lowered prints text of whole kernels: leave out --brief and --json");
    if (!machine_code_.empty()) return ShowMachineCode(capability);
    auto report = InspectFile(file_, capability, brief_ ? InspectDepth::kEntries : InspectDepth::kKernels);
    if (!report.ok()) return Fail(report.error().message);
    if (brief_) {
      Print(json_ ? ReportJson(*report, view_) : BriefText(*report));
      return kExitOk;
    }
    if (!AnyWanted(*report)) return Fail("no kernel in " + file_ + " has a name that contains '" + view_.kernel + "'");
    if (check_) {
      const Status checked = CheckKernels(*report);
      if (!checked.ok()) return Fail(checked.error().message);
    }
    if (!lowered_.empty()) return ShowLowered(*report);
    view_.details |= !view_.kernel.empty();
    Print(json_ ? ReportJson(*report, view_) : ReportText(*report, view_));
    return AnyRefused(*report) ? kExitFound : kExitOk;
  }

 private:
  int ShowMachineCode(std::optional<ComputeCapability> capability) const {
    if (brief_ || check_ || json_ || view_.details || !view_.kernel.empty() || !lowered_.empty())
      return Fail("--machine-code prints text of machine code: of the options only --device goes with it");
    const auto text = MachineCodeText(file_, machine_code_, capability);
    if (!text.ok()) return Fail(text.error().message);
    Print(*text);
    return kExitOk;
  }
  int ShowLowered(const InspectReport& report) const {
    const auto device = sim::LoadDevice(lowered_);
    if (!device.ok()) return Fail(device.error().message);
    Print(LoweredText(report, view_, *device));
    return kExitOk;
  }
  bool AnyWanted(const InspectReport& report) const {
    const auto wanted = [this](const auto& kernel) { return Wanted(view_, kernel.name, kernel.demangled); };
    return view_.kernel.empty() || std::ranges::any_of(report.containers, [&](const ContainerReport& container) {
             return std::ranges::any_of(container.kernels, wanted) ||
                    std::ranges::any_of(container.machine_kernels, wanted);
           });
  }
  static bool AnyRefused(const InspectReport& report) {
    return std::ranges::any_of(report.containers, [](const ContainerReport& container) {
      return std::ranges::any_of(container.kernels, &KernelReport::refused);
    });
  }

  std::string file_, device_, lowered_, machine_code_;
  InspectView view_;
  bool brief_ = false;
  bool check_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeInspect() { return std::make_unique<Inspect>(); }

}  // namespace gridloom::launcher
