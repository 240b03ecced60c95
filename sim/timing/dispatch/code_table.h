// Code of kernels as the device executes it, decoded once for all works that have it.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>

#include "rewriter/support/result.h"
#include "sim/timing/dispatch/work_state.h"

namespace gridloom::timing {

class CodeTable {
 public:
  explicit CodeTable(const sim::DeviceSpec& device) : device_(device) {}

  /// Fails as CheckCode does.
  Result<std::shared_ptr<const CodeOfWorks>> DecodedOf(const trace::KernelCode& code);
  /// How many codes are kept, those included whose works have ended and that have not been looked through.
  std::size_t size() const { return decoded_.size(); }

 private:
  static constexpr std::size_t kFewest = 64;

  const sim::DeviceSpec& device_;
  // Of kernels that have not ended. A work keeps its source, and that its code, so nothing else can lie at the address
  // of one as long as works hold the entry. What parts keep of a work says nothing about its source.
  std::unordered_map<const trace::KernelCode*, std::weak_ptr<const CodeOfWorks>> decoded_;
  std::size_t most_ = kFewest;  // more are looked through for those that are gone
};

/// Whether two codes are alike. CTAs that join a kernel are checked against the code that they come with, and run by
/// the kernel's: programs may give two kernels one name.
bool IsSame(const DecodedCode& a, const DecodedCode& b);

/// policy::KernelView::code. It follows from the program alone.
std::uint64_t IdentityOf(const trace::KernelCode& code, const trace::LaunchShape& shape);

}  // namespace gridloom::timing
