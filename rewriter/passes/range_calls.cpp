#include "rewriter/passes/range_calls.h"

#include <algorithm>

#include "rewriter/passes/range_emitter.h"

namespace gridloom::passes {

using analysis::AddressAnalysis;
using analysis::Polynomial;
using analysis::RangeAccess;
using analysis::RangeArgument;

namespace {

struct Parameter {
  std::string_view name;
  ptx::ScalarType type;
};
constexpr Parameter kIntervalParameters[] = {
    {"array", ptx::ScalarType::kU64}, {"low", ptx::ScalarType::kU64}, {"high", ptx::ScalarType::kU64}, {"flags", ptx::ScalarType::kU32}};
constexpr Parameter kStridedParameters[] = {{"array", ptx::ScalarType::kU64},  {"base", ptx::ScalarType::kU64},
                                            {"stride", ptx::ScalarType::kU64}, {"count", ptx::ScalarType::kU64},
                                            {"width", ptx::ScalarType::kU64},  {"flags", ptx::ScalarType::kU32}};

std::string FunctionName(RangeCallKind kind, RangeForm form) {
  return std::string("gridloom_") + (kind == RangeCallKind::kSet ? "set" : "release") +
         (form == RangeForm::kInterval ? "_range" : "_strided");
}

/// Accesses whose addresses differ by constants: bytes from `first` to `last` of `address`.
struct Group {
  Polynomial address;  ///< without its constant
  std::vector<analysis::AssumptionId> assumptions;
  std::vector<analysis::UniformCondition> conditions;
  std::int64_t first = 0, last = 0;
  unsigned flags = 0;
};

unsigned FlagsOf(const RangeAccess& access) { return (access.reads ? 1u : 0u) | (access.writes ? 2u : 0u); }

/// Accesses of the bounded ones; those of different flags are kept apart when `by_flags`.
std::vector<Group> GroupsOf(const AddressAnalysis& analysis, const RangeArgument& argument, bool by_flags) {
  std::vector<Group> groups;
  for (const std::uint32_t index : argument.accesses) {
    const RangeAccess& access = analysis.accesses()[index];
    if (!access.bounded) continue;
    const std::int64_t constant = access.address.constant();
    const Polynomial address = access.address.Plus(Polynomial::Constant(-constant));
    const auto it = std::ranges::find_if(groups, [&](const Group& group) {
      return group.address == address && group.assumptions == access.assumptions && group.conditions == access.conditions &&
             (!by_flags || group.flags == FlagsOf(access));
    });
    if (it == groups.end()) {
      groups.push_back({address, access.assumptions, access.conditions, constant, constant + access.bytes, FlagsOf(access)});
      continue;
    }
    it->first = std::min(it->first, constant);
    it->last = std::max(it->last, constant + access.bytes);
    it->flags |= FlagsOf(access);
  }
  return groups;
}

class CallEmitter {
 public:
  CallEmitter(const AddressAnalysis& analysis, RangeCallKind kind, RangeForm form, std::array<std::string, 3> block_size)
      : analysis_(analysis), code_(analysis, std::move(block_size)), function_(FunctionName(kind, form)) {}

  void Intervals(const RangeArgument& argument) {
    CodeNumber low{0}, high{-1};
    if (argument.bounded()) {
      std::string holds;
      bool first = true;
      for (const Group& group : GroupsOf(analysis_, argument, false)) {
        const CodeRange range = code_.RangeOf(group.address);
        const CodeNumber from = code_.Add(range.low, {group.first}), to = code_.Add(range.high, {group.last});
        low = first ? from : code_.Least(low, from);
        high = first ? to : code_.Most(high, to);
        holds = code_.And(holds, code_.Holds(group.assumptions, group.conditions));
        first = false;
      }
      low = code_.Select(holds, code_.Most(low, {0}), {0});
      high = code_.Select(holds, high, {-1});
    }
    Call(argument, {low, high}, (argument.reads ? 1u : 0u) | (argument.writes ? 2u : 0u));
  }

  // The dimension that steps farthest is the stride; what the others cover is the width of a piece.
  void Strided(const RangeArgument& argument) {
    if (!argument.bounded()) {
      Call(argument, {{0}, {0}, {1}, {-1}}, (argument.reads ? 1u : 0u) | (argument.writes ? 2u : 0u));
      return;
    }
    for (const Group& group : GroupsOf(analysis_, argument, true)) {
      CodeNumber base{group.first}, stride{0}, steps{0}, width{group.last - group.first};
      for (const auto& [uniform, range] : Dimensions(group.address, base)) {
        const CodeNumber extent = code_.Subtract(range.high, range.low);
        const CodeNumber factor = code_.Uniform(uniform);
        const analysis::Interval bounds = analysis_.symbols().BoundsOf(uniform);
        const CodeRange scaled = code_.Scale(range, uniform, bounds);
        base = code_.Add(base, scaled.low);
        const CodeNumber distance = bounds.low >= 0 ? factor : code_.Most(factor, code_.Subtract({0}, factor));
        width = code_.Add(width, code_.Subtract(scaled.high, scaled.low));
        if (stride.Is(0)) {
          stride = distance;
          steps = extent;
        } else {
          const std::string farther = code_.Compare("gt", distance, stride);
          stride = code_.Select(farther, distance, stride);
          steps = code_.Select(farther, extent, steps);
        }
      }
      width = code_.Subtract(width, code_.Multiply(stride, steps));
      const std::string holds = code_.Holds(group.assumptions, group.conditions);
      // A base below zero belongs to threads that access nothing: as one wide piece it stays sound.
      const std::string usable = code_.Compare("ge", base, {0}, holds);
      Call(argument,
           {code_.Select(usable, base, {0}), code_.Select(usable, stride, {0}), code_.Select(usable, code_.Add(steps, {1}), {1}),
            code_.Select(usable, width, {-1})},
           group.flags);
    }
  }

  std::string Text() const { return "{\n" + code_.Text() + "}\n"; }

 private:
  struct Dimension {
    Polynomial factor;
    CodeRange range;
  };
  /// What ranges with the same factor is one dimension; what is uniform is added to `base`.
  std::vector<Dimension> Dimensions(const Polynomial& address, CodeNumber& base) {
    std::vector<Dimension> dimensions;
    for (const RangeEmitter::Part& part : code_.Split(address)) {
      if (part.ranging.degree() == 0) {
        base = code_.Add(code_.Uniform(part.factor), base);
        continue;
      }
      const CodeRange range = code_.RangeOf(part.ranging);
      const auto it = std::ranges::find(dimensions, part.factor, &Dimension::factor);
      if (it == dimensions.end()) {
        dimensions.push_back({part.factor, range});
      } else {
        it->range = {code_.Add(it->range.low, range.low), code_.Add(it->range.high, range.high)};
      }
    }
    return dimensions;
  }

  void Call(const RangeArgument& argument, const std::vector<CodeNumber>& numbers, unsigned flags) {
    std::vector<std::string> values{code_.InRegister(code_.Uniform(Polynomial::Of(argument.pointer)))};
    for (const CodeNumber& number : numbers) values.push_back(code_.InRegister(number));
    std::string text = "{\n", names;
    for (std::size_t i = 0; i <= values.size(); ++i) {
      const std::string name = "gl_range" + std::to_string(i);
      text += std::string(".param .b") + (i < values.size() ? "64 " : "32 ") + name + ";\n";
      names += (i == 0 ? "" : ", ") + name;
    }
    for (std::size_t i = 0; i < values.size(); ++i) text += "st.param.b64 [gl_range" + std::to_string(i) + "], " + values[i] + ";\n";
    text += "st.param.b32 [gl_range" + std::to_string(values.size()) + "], " + std::to_string(flags) + ";\n";
    text += "call " + function_ + ", (" + names + ");\n}";
    code_.Block(text);
  }

  const AddressAnalysis& analysis_;
  RangeEmitter code_;
  const std::string function_;
};

}  // namespace

void DeclareRangeFunctions(ptx::Module& module) {
  std::vector<ptx::ModuleItem> declared;
  for (const RangeForm form : {RangeForm::kInterval, RangeForm::kStrided}) {
    for (const RangeCallKind kind : {RangeCallKind::kSet, RangeCallKind::kRelease}) {
      const std::string name = FunctionName(kind, form);
      if (module.FindFunction(name) != nullptr) continue;
      ptx::Function& function = module.functions.emplace_back();
      function.name = module.strings.Intern(name);
      function.linkage = ptx::Linkage::kExtern;
      const auto add = [&](const Parameter& parameter) {
        ptx::Variable& variable = function.params.emplace_back();
        variable.name = module.strings.Intern(parameter.name);
        variable.space = ptx::StateSpace::kParam;
        variable.type = parameter.type;
      };
      if (form == RangeForm::kInterval) std::ranges::for_each(kIntervalParameters, add);
      else std::ranges::for_each(kStridedParameters, add);
      declared.emplace_back(&function);
    }
  }
  module.items.insert(module.items.begin(), std::make_move_iterator(declared.begin()), std::make_move_iterator(declared.end()));
}

std::string RangeCalls(const AddressAnalysis& analysis, RangeCallKind kind, RangeForm form, std::array<std::string, 3> block_size) {
  CallEmitter emitter(analysis, kind, form, std::move(block_size));
  for (const RangeArgument& argument : analysis.arguments()) {
    if (form == RangeForm::kInterval) {
      emitter.Intervals(argument);
    } else {
      emitter.Strided(argument);
    }
  }
  return emitter.Text();
}

}  // namespace gridloom::passes
