#include "sim/lowering/dependences.h"

#include <algorithm>
#include <unordered_map>

namespace gridloom::lowering {
namespace {

using trace::OpClass;
using trace::Space;

/// What a node does with memory.
struct Access {
  enum class Kind : std::uint8_t {
    kNone,
    kRead,
    kWrite,
    kFence,  ///< all memory stays on its side
  };
  Kind kind = Kind::kNone;
  Space space = Space::kNone;
  bool generic = false, read_only = false;
  std::uint32_t width = 0;
  // Where it is, if its address is a register and a constant.
  Register base = 0;
  std::uint32_t writer = 0;  ///< of the base: which of the nodes wrote it last, from 1; 0: none of them
  std::int64_t offset = 0;
};

/// Whether it changes memory in a way, or at a time, that others rely on.
bool IsFence(const Node& node) {
  const trace::Instruction& shape = node.shape;
  switch (shape.op) {
    case OpClass::kBarrier:
    case OpClass::kFence: return true;
    case OpClass::kTensor: return !node.operation.only_registers;
    case OpClass::kMemory: return (shape.flags & (trace::kAtomic | trace::kVolatile)) != 0;
    default: return false;
  }
}

Access AccessOf(const Node& node) {
  Access access;
  if (IsFence(node)) {
    access.kind = Access::Kind::kFence;
    return access;
  }
  if (node.shape.op != OpClass::kMemory) return access;
  access.kind = (node.shape.flags & trace::kStore) != 0 ? Access::Kind::kWrite : Access::Kind::kRead;
  access.space = node.shape.space;
  access.generic = (node.shape.flags & trace::kGeneric) != 0;
  access.read_only =
      (node.shape.flags & trace::kReadOnly) != 0 || access.space == Space::kConstant || access.space == Space::kTexture;
  access.width = node.shape.width;
  for (std::size_t i = 0; i + 1 < node.sources.size(); ++i) {
    if (node.sources[i + 1].kind != Term::Kind::kOffset) continue;
    if (i == 0 && node.sources[0].kind == Term::Kind::kRegister && node.operation.base != Base::kUnknown) {
      access.base = static_cast<Register>(node.sources[0].value);
      access.offset = static_cast<std::int64_t>(node.sources[1].value);
    }
    break;
  }
  return access;
}

bool MayMeet(const Access& a, const Access& b) {
  if (a.read_only || b.read_only) return false;
  if (a.space != b.space) {
    const auto reaches = [](const Access& x, const Access& y) { return x.generic && y.space != Space::kParameter; };
    return reaches(a, b) || reaches(b, a);
  }
  if (a.base == 0 || a.base != b.base || a.writer != b.writer) return true;
  // Both may be vectors, whose entries have no text each; a width that is not known would have no base.
  const auto ends_before = [](const Access& x, const Access& y) {
    return x.offset <= y.offset &&
           static_cast<std::uint64_t>(y.offset) - static_cast<std::uint64_t>(x.offset) >= x.width;
  };
  return !ends_before(a, b) && !ends_before(b, a);
}

class Finder {
 public:
  Finder(std::span<const Node> nodes, const Target& target) : nodes_(nodes), target_(target) {}

  std::vector<Dependence> Find() {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      at_ = i;
      AddRegisters(nodes_[i]);
      AddMemory(nodes_[i]);
    }
    return std::move(found_);
  }

 private:
  struct Uses {
    std::uint32_t writer = 0;            // from 1; 0: none
    std::vector<std::uint32_t> readers;  // since
  };

  void Add(std::uint32_t before, std::uint32_t cycles) {
    if (before != at_) found_.push_back({before, at_, cycles});
  }

  void AddRegisters(const Node& node) {
    const auto read = [&](Register reg) {
      Uses& uses = registers_[reg];
      if (uses.writer != 0) Add(uses.writer - 1, target_.LatencyOf(nodes_[uses.writer - 1]));
      uses.readers.push_back(at_);
    };
    VisitReads(node, read);
    if (node.partial()) VisitRegisters(node.results, read);
    VisitRegisters(node.results, [&](Register reg) {
      Uses& uses = registers_[reg];
      for (const std::uint32_t reader : uses.readers) Add(reader, 0);
      // The second of two writes waits for the first in the model as on the device.
      if (uses.writer != 0) Add(uses.writer - 1, target_.LatencyOf(nodes_[uses.writer - 1]));
      uses.writer = at_ + 1;
      uses.readers.clear();
    });
  }

  void AddMemory(const Node& node) {
    Access access = AccessOf(node);
    if (access.kind == Access::Kind::kNone) return;
    if (access.base != 0) access.writer = WriterBefore(node, access.base);
    if (access.kind == Access::Kind::kFence) {
      for (const auto& [earlier, unused] : accesses_) Add(earlier, 0);
      if (fence_ != 0) Add(fence_ - 1, 0);
      accesses_.clear();
      fence_ = at_ + 1;
      return;
    }
    if (fence_ != 0) Add(fence_ - 1, 0);
    for (const auto& [earlier, other] : accesses_) {
      const bool writes = access.kind == Access::Kind::kWrite || other.kind == Access::Kind::kWrite;
      if (writes && MayMeet(access, other)) Add(earlier, 0);
    }
    accesses_.emplace_back(at_, access);
  }

  /// The node has been added to the registers, and may write its own base.
  std::uint32_t WriterBefore(const Node& node, Register base) const {
    const bool own = std::ranges::any_of(node.results, [&](const Term& term) { return term.value == base; });
    const auto uses = registers_.find(base);
    return own ? ~0u - at_ : uses == registers_.end() ? 0 : uses->second.writer;
  }

  const std::span<const Node> nodes_;
  const Target& target_;
  std::uint32_t at_ = 0, fence_ = 0;  // fence_: the last one, from 1
  std::unordered_map<Register, Uses> registers_;
  std::vector<std::pair<std::uint32_t, Access>> accesses_;  // since the last fence
  std::vector<Dependence> found_;
};

}  // namespace

std::vector<Dependence> DependencesOf(std::span<const Node> nodes, const Target& target) {
  return Finder(nodes, target).Find();
}

}  // namespace gridloom::lowering
