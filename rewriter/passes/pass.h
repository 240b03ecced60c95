// What a pass is: a change of a whole module with a stated contract (docs/passes.md).
//
// Contract of every pass:
//   - It gets a module that parses and verifies, and leaves one; it may change anything in it, or nothing.
//   - Per kernel it says what it did. A refused kernel is left as it was, with the reason and the place; what it shares
//     with other kernels (functions, variables) still does for it what it did.
//   - A changed kernel does what it did before when its hidden parameters have the values their roles call for.
//   - It keeps nothing between modules, reads nothing else and may run on several threads at once. The same module
//     gives the same result.
//   - New statements carry the source location of the statement they stand for, so that a fault is still named by its
//     line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/ptx/ir.h"
#include "rewriter/support/diagnostic.h"
#include "rewriter/support/result.h"

namespace gridloom::passes {

enum class KernelStatus : std::uint8_t {
  kUnchanged,  ///< nothing to do
  kChanged,
  kRefused,  ///< left as it was: `reason`, `loc`
};

/// What a launch has to put into a parameter that a pass appended to a kernel. The text is the name in reports and,
/// behind `gl_`, that of the PTX parameter.
//  X(enumerator, text, bytes, meaning)
#define GL_HIDDEN_ROLES(X)                                                                                   \
  X(kFirstCtaX, "first_x", 4, "%ctaid.x of the slice's first CTA")                                           \
  X(kFirstCtaY, "first_y", 4, "%ctaid.y of the slice's first CTA")                                           \
  X(kFirstCtaZ, "first_z", 4, "%ctaid.z of the slice's first CTA")                                           \
  X(kGridX, "grid_x", 4, "%nctaid.x of the original grid")                                                   \
  X(kGridY, "grid_y", 4, "%nctaid.y of the original grid")                                                   \
  X(kGridZ, "grid_z", 4, "%nctaid.z of the original grid")                                                   \
  X(kReciprocalX, "reciprocal_x", 4, "multiplier that divides by %nctaid.x (rewriter/passes/slice_range.h)") \
  X(kShiftX, "shift_x", 4, "shift that goes with it")                                                        \
  X(kReciprocalY, "reciprocal_y", 4, "multiplier that divides by %nctaid.y")                                 \
  X(kShiftY, "shift_y", 4, "shift that goes with it")                                                        \
  X(kGridId, "grid_id", 8, "%gridid that all slices of one launch share")                                    \
  X(kBlockX, "block_x", 4, "%ntid.x of the kernel that is profiled")                                         \
  X(kBlockY, "block_y", 4, "%ntid.y of the kernel that is profiled")                                         \
  X(kBlockZ, "block_z", 4, "%ntid.z of the kernel that is profiled")                                         \
  X(kEndedTable, "ended_table", 8, "address of the counts of threads that have ended; 0: nobody counts")     \
  X(kEndedShift, "ended_shift", 4, "two to its power are the CTAs of a slice that share a count")

enum class HiddenRole : std::uint8_t {
#define X(id, text, bytes, meaning) id,
  GL_HIDDEN_ROLES(X)
#undef X
};

struct HiddenRoleInfo {
  std::string_view text;
  std::uint32_t bytes;
  std::string_view meaning;
};
const HiddenRoleInfo& Info(HiddenRole role);

/// A parameter appended to a kernel: where a launch puts its value in the parameter block.
struct HiddenParam {
  HiddenRole role{};
  std::uint32_t offset = 0;
};

/// What a pass that decides place by place did at one of them.
struct PlaceReport {
  std::string function;  ///< the kernel, or a function that it calls
  SourceLoc loc;
  bool changed = false;
  /// Why not, as in KernelReport; of a place that was changed, when it still does what it did.
  std::string reason = {};
};

struct KernelReport {
  std::string kernel;
  KernelStatus status = KernelStatus::kUnchanged;
  /// kRefused: a clause that completes "kernel k is not …ed: ", e.g. "it waits for other CTAs (…)".
  std::string reason;
  SourceLoc loc;  ///< kRefused: where; line 0 when no single place is to blame
  std::vector<HiddenParam> hidden = {};
  /// The places, of a pass that decides place by place. The kernel is refused when all of its places are.
  std::vector<PlaceReport> places = {};
};

/// A kernel that a pass added to the module.
struct AddedKernel {
  std::string name;
  std::string of;       ///< the kernel it belongs to
  std::string purpose;  ///< one word of the pass: "profile"
  std::vector<HiddenParam> hidden = {};
};

struct PassReport {
  std::vector<KernelReport> kernels;  ///< every kernel the module had, in its order
  std::vector<AddedKernel> added = {};
};

class Pass {
 public:
  virtual ~Pass() = default;
  /// The pass's name in a pipeline: "slice".
  virtual std::string_view name() const = 0;
  /// One line for lists of passes.
  virtual std::string_view summary() const = 0;
  /// False: what a launch of a kernel does is the same before and after; the pass only adds others.
  virtual bool changes_kernels() const { return true; }
  /// The pass whose additions this one answers, where a pipeline has both: both have to see the same kernels. Empty:
  /// none.
  virtual std::string_view answers() const { return {}; }
  /// An error means that nothing of the module can be used any more; a kernel that cannot be changed is no error.
  virtual Result<PassReport> Run(ptx::Module& module) const = 0;
};

/// Every kernel of the module that has a body, kUnchanged: what a report starts from.
PassReport StartReport(const ptx::Module& module);

/// Appends a parameter for this role to a kernel and enters it into its report, unless the kernel has it already.
/// Returns the parameter. Fails when the parameters would no longer fit what a launch may pass.
Result<ptx::Variable*> AppendHidden(ptx::Module& module, ptx::Function& kernel, HiddenRole role, KernelReport& report);

/// The role of a parameter that AppendHidden appended, by its name; nothing for a kernel's own.
std::optional<HiddenRole> HiddenRoleOf(const ptx::Function& kernel, const ptx::Variable& param);

/// Bytes of parameters a kernel of this module may have (PTX ISA 5.1.6.1): 32764 from sm_70 and PTX 8.1 on, else 4352.
std::uint32_t MaxParamBytes(const ptx::Module& module);

}  // namespace gridloom::passes
