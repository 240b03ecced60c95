// The values that tell a CTA its place in the grid, which functions read them, and how reads are replaced.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "rewriter/analysis/call_graph.h"
#include "rewriter/passes/pass.h"
#include "rewriter/ptx/ir.h"

namespace gridloom::passes {

//  X(enumerator, special register, name of a function's hidden parameter)
#define GL_CTA_VALUES(X)             \
  X(kCtaX, "%ctaid.x", "ctaid_x")    \
  X(kCtaY, "%ctaid.y", "ctaid_y")    \
  X(kCtaZ, "%ctaid.z", "ctaid_z")    \
  X(kGridX, "%nctaid.x", "nctaid_x") \
  X(kGridY, "%nctaid.y", "nctaid_y") \
  X(kGridZ, "%nctaid.z", "nctaid_z") \
  X(kGridId, "%gridid", "gridid")

enum class CtaValue : std::uint8_t {
#define X(id, special, param) id,
  GL_CTA_VALUES(X)
#undef X
};
#define X(id, special, param) +1
inline constexpr std::size_t kCtaValues = 0 GL_CTA_VALUES(X);
#undef X
using CtaValues = std::bitset<kCtaValues>;

/// The values that each function of a module needs: what it reads itself, and what the functions need that it calls.
/// Functions whose address is taken all need the same, so that a caller need not know which it calls.
class CtaValueNeeds {
 public:
  CtaValueNeeds(const ptx::Module& module, const analysis::CallGraph& calls);

  const CtaValues& of(analysis::NodeId function) const { return needs_[function]; }
  /// What every function needs whose address is taken.
  const CtaValues& of_pointers() const { return pointers_; }

 private:
  std::vector<CtaValues> needs_;
  CtaValues pointers_;
};

/// What a function reads itself.
CtaValues ReadValues(const ptx::Function& function);

/// Where the code of a function gets the values from.
enum class ValueSource : std::uint8_t {
  kSpecial,    ///< the special registers: a kernel that is not sliced
  kSlice,      ///< a sliced kernel's hidden parameters, and its place in the slice
  kParameter,  ///< a function's own hidden parameters, one per value
};

/// Hidden parameters of a kernel that computes these values, in the order of the roles.
std::vector<HiddenRole> RolesFor(const CtaValues& values);

/// Appends one parameter per value to a function or prototype.
void AppendValueParams(ptx::Module& module, std::deque<ptx::Variable>& params, const CtaValues& values,
                       std::string_view function);

/// Replaces all reads of a function with a body, and passes values on at its calls. Its own parameters must have been
/// appended. What `source` is kSpecial for keeps its reads.
void RewriteIndexReads(ptx::Module& module, ptx::Function& function, ValueSource source,
                       const analysis::CallGraph& calls, const CtaValueNeeds& needs);

}  // namespace gridloom::passes
