// What `gridloom inspect` knows about a file; inspect_text.cpp and inspect_json.cpp show it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rewriter/analysis/access_pattern.h"
#include "rewriter/image/image_set.h"
#include "rewriter/passes/pass.h"
#include "rewriter/ptx/ir.h"
#include "rewriter/support/result.h"

namespace gridloom::launcher {

struct ParameterReport {
  std::string name;
  std::string type;  ///< "u64", "b8[24]"
  std::uint32_t offset = 0, bytes = 0, align = 0;
};

/// Whether a pass applies to a kernel (docs/passes.md).
struct PassAnswer {
  std::string pass;
  std::string why_not;                           ///< empty when it applies
  std::uint32_t line = 0;                        ///< of the PTX; 0 when no single place is to blame
  std::vector<passes::PlaceReport> places = {};  ///< where the pass decides place by place
};

struct KernelReport {
  std::string name;       ///< as a driver finds it
  std::string demangled;  ///< as its source spells it
  std::vector<ParameterReport> parameters;
  std::uint32_t parameter_bytes = 0;
  std::map<std::string, std::uint64_t> registers;  ///< declared, by width: "pred", "b16", "b32", "b64", "b128"
  std::uint32_t shared_bytes = 0;                  ///< static, callees included
  bool dynamic_shared = false;                     ///< refers to .extern .shared
  std::uint32_t local_bytes = 0;                   ///< of the kernel itself
  std::vector<std::string> barriers;       ///< which it uses, callees included: "0", "1", "from a register", "cluster"
  std::vector<std::string> launch_bounds;  ///< directives as written: "maxntid 256, 1, 1"
  std::uint64_t instructions = 0;          ///< of the kernel itself
  std::uint64_t callee_instructions = 0;   ///< of the functions it may call
  std::vector<std::string> system_calls;   ///< vprintf, malloc, …: called but defined nowhere
  std::vector<std::string> unknown_opcodes;          ///< not in the instruction table; running them is refused
  std::uint32_t live_registers = 0;                  ///< most 32-bit registers in use at once
  std::vector<PassAnswer> passes;                    ///< in the order of the list of passes
  std::vector<analysis::ArgumentPattern> arguments;  ///< what it accesses in global memory, pointer by pointer
  std::string check;                                 ///< of `--check`: "compiles", or why it is refused; empty without
  bool refused = false;
};

/// Kernels known from machine code only.
struct MachineKernelReport {
  std::string name, demangled;
  std::uint64_t code_bytes = 0, shared_bytes = 0;
};

struct EntryReport {
  std::string kind;  ///< "PTX 9.0", "machine code", "kind 64"
  std::string arch;
  std::string compression;  ///< "", "LZ4", "zstd"
  std::uint64_t stored_bytes = 0, bytes = 0;
  std::string source_name, options;
  bool debug = false;
  bool selected = false;  ///< the PTX whose kernels are shown
  std::string error;      ///< why it could not be read
};

struct ContainerReport {
  std::string member;  ///< of a static library
  std::string section;
  bool relocatable = false;
  std::vector<EntryReport> entries;
  std::vector<KernelReport> kernels;                 ///< of the selected PTX
  std::vector<MachineKernelReport> machine_kernels;  ///< when there is no PTX for the device
  std::uint64_t device_functions = 0, global_bytes = 0, constant_bytes = 0;
  std::string ptx_name;                  ///< of the selected PTX, for diagnostics
  std::string ptx;                       ///< its text
  std::vector<std::string> diagnostics;  ///< of the selected PTX, as a compiler prints them
  std::unique_ptr<ptx::Module> module;   ///< the selected PTX, when it has no syntax errors
};

struct InspectReport {
  std::string file;
  std::string format;
  ComputeCapability device;  ///< the one PTX was selected for
  std::vector<ContainerReport> containers;
  std::string note;  ///< what a user should know: nothing to run, machine code only
};

enum class InspectDepth : std::uint8_t {
  kEntries,  ///< what is there, of which size; nothing is unpacked
  kKernels,
};

/// Reads a file and everything in it. Without `device`, the default device's compute capability or, if the file needs
/// another one, that. Where a file has no containers, PTX that stands in its strings is read: GCC's programs keep
/// theirs so.
Result<InspectReport> InspectFile(const std::filesystem::path& file, std::optional<ComputeCapability> device,
                                  InspectDepth depth = InspectDepth::kKernels);

/// Adds what a sink holds about the container's PTX to its diagnostics.
void AddDiagnostics(const DiagnosticSink& sink, ContainerReport& container);

/// Facts about one kernel of a module.
KernelReport ReportKernel(const ptx::Module& module, const ptx::Function& kernel);

}  // namespace gridloom::launcher
