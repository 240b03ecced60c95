#include "scheduler/policy/builtin.h"

#include "scheduler/policy/fair.h"
#include "scheduler/policy/leftover.h"
#include "scheduler/policy/priority.h"
#include "scheduler/policy/serial.h"

namespace gridloom::policy {
namespace {

template <typename T>
std::unique_ptr<Policy> Make(const PolicyInputs&) {
  return std::make_unique<T>();
}

std::unique_ptr<Policy> MakeFair(const PolicyInputs& inputs) { return std::make_unique<Fair>(inputs.fair_wait); }
std::unique_ptr<Policy> MakeKernelet(const PolicyInputs& inputs) { return std::make_unique<Kernelet>(inputs.planner, inputs.kernelet); }

std::unique_ptr<Policy> MakeProbing(const PolicyInputs& inputs) {
  return std::make_unique<Kernelet>(inputs.learning_planner, inputs.kernelet, "kernelet-probing");
}

struct Entry {
  std::string_view name;
  std::unique_ptr<Policy> (*make)(const PolicyInputs& inputs);
};

constexpr Entry kPolicies[] = {
    {"fair", MakeFair},           {"kernelet", MakeKernelet},   {"kernelet-probing", MakeProbing},
    {"leftover", Make<Leftover>}, {"priority", Make<Priority>}, {"serial", Make<Serial>},
};

}  // namespace

std::unique_ptr<Policy> MakePolicy(std::string_view name, const PolicyInputs& inputs) {
  for (const Entry& entry : kPolicies) {
    if (entry.name == name) return entry.make(inputs);
  }
  return nullptr;
}

std::vector<std::string_view> PolicyNames() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kPolicies) names.push_back(entry.name);
  return names;
}

}  // namespace gridloom::policy
