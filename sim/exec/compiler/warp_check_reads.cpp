// The question about a group of reads (read_groups.h), and the table that goes with it.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "sim/exec/compiler/read_groups.h"
#include "sim/exec/compiler/root_and_offset.h"
#include "sim/exec/compiler/warp_helpers.h"
#include "sim/exec/compiler/warp_memcheck.h"
#include "sim/exec/compiler/warp_values.h"
#include "sim/exec/contract/read_group.h"

namespace gridloom::exec {

using llvm::Value;

namespace {

/// A ReadGroup in the making.
struct ReadTable {
  struct Root {
    Value* address;
    SharedAccessImm what;
    std::uint32_t first_base;
  };
  std::vector<Root> roots;
  std::vector<ReadGroup::Family> families;
  std::vector<ReadGroup::Read> reads;

  /// The family of a read that lies `offset` behind a root: one of the same root, if that does not make it reach far
  /// beyond what it reads.
  std::uint32_t FamilyOf(const Root& root, std::int32_t offset, std::int32_t bytes) {
    constexpr std::int64_t kMostBytesARead = 512;
    for (ReadGroup::Family& family : families) {
      if (family.first_base != root.first_base || (offset - family.least) % root.what.bytes != 0) continue;
      const std::int32_t least = std::min(family.least, offset), end = std::max(family.end, offset + bytes);
      const auto number = static_cast<std::uint32_t>(&family - families.data());
      const auto count = std::ranges::count(reads, number, &ReadGroup::Read::family);
      if (std::int64_t{end} - least > kMostBytesARead * (count + 1)) continue;
      family.least = least;
      family.end = end;
      return number;
    }
    families.push_back({root.first_base, kWarpSize / root.what.row_lanes, offset, offset + bytes, root.what});
    return static_cast<std::uint32_t>(families.size() - 1);
  }

  std::vector<std::uint32_t> Words() const {
    const ReadGroup head{static_cast<std::uint32_t>(families.size()), static_cast<std::uint32_t>(reads.size())};
    std::vector<std::uint32_t> words;
    const auto add = [&](const void* from, std::size_t bytes) {
      const std::size_t at = words.size();
      words.resize(at + bytes / sizeof(std::uint32_t));
      std::memcpy(words.data() + at, from, bytes);
    };
    add(&head, sizeof head);
    add(families.data(), families.size() * sizeof families[0]);
    add(reads.data(), reads.size() * sizeof reads[0]);
    return words;
  }
};

std::uint32_t NumberIn(const Value* constant) {
  return static_cast<std::uint32_t>(llvm::cast<llvm::ConstantInt>(constant)->getZExtValue());
}

}  // namespace

/// Where lanes are off, each read is looked at by itself.
void MemcheckEmitter::EmitCheckReads(llvm::CallInst& call) {
  ReadTable table;
  std::vector<Value*> bases;
  bool fits = !w_.divergent;
  for (unsigned i = 0; i + 1 < call.arg_size() && fits; i += 3) {
    const RootAndOffset at = ResolveAll(call.getArgOperand(i));
    SharedAccessImm what{.bytes = static_cast<std::uint8_t>(NumberIn(call.getArgOperand(i + 1)))};
    auto root = std::ranges::find_if(table.roots, [&](const ReadTable::Root& known) {
      return known.address == at.root && known.what.bytes == what.bytes;
    });
    if (root == table.roots.end()) {
      const std::optional<Linear> linear = values_.AsLinear(call.getArgOperand(i));
      fits = linear && !linear->valid && StandInRows(linear->pattern, what) &&
             bases.size() + kWarpSize / what.row_lanes <= ReadGroup::kMostBases;
      if (!fits) break;
      table.roots.push_back({at.root, what, static_cast<std::uint32_t>(bases.size())});
      root = std::prev(table.roots.end());
      for (unsigned lane = 0; lane < kWarpSize; lane += what.row_lanes)
        bases.push_back(
            b_.CreateAdd(linear->base, b_.getInt64(static_cast<std::uint64_t>(linear->pattern[lane] - at.offset))));
    }
    const std::int32_t bytes =
        root->what.pattern == SharedAccessImm::kUniform ? what.bytes : what.bytes * root->what.row_lanes;
    fits = at.offset == static_cast<std::int32_t>(at.offset) && at.offset < INT32_MAX - bytes;
    if (!fits) break;
    const auto offset = static_cast<std::int32_t>(at.offset);
    table.reads.push_back({table.FamilyOf(*root, offset, bytes), offset, NumberIn(call.getArgOperand(i + 2))});
  }
  Value* const good = fits ? AskAboutReads(table.Words(), bases) : b_.getFalse();
  values_.Define(&call, values_.ShapeOf(&call).vector() ? w_.Splat(good) : good);
}

/// i1: the runtime has nothing against any read of the ReadGroup, and has noted them.
Value* MemcheckEmitter::AskAboutReads(llvm::ArrayRef<std::uint32_t> group, llvm::ArrayRef<Value*> bases) {
  llvm::Constant* const data = llvm::ConstantDataArray::get(b_.getContext(), group);
  auto* table = new llvm::GlobalVariable(*w_.target->getParent(), data->getType(), true,
                                         llvm::GlobalValue::PrivateLinkage, data, "reads");
  table->setAlignment(llvm::Align(4));
  Value* const answer = w_.Scratch(0, sizeof(std::uint32_t));
  Value* const places = w_.Scratch(1, ReadGroup::kMostBases * sizeof(std::uint64_t));
  for (unsigned i = 0; i < bases.size(); ++i)
    b_.CreateAlignedStore(bases[i], b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), places, i), llvm::Align(8));
  calls_.CallHelper(Helper::kCheckReads, w_.mask, b_.getInt32(0), 0, {answer, places, table});
  return b_.CreateICmpNE(b_.CreateAlignedLoad(b_.getInt32Ty(), answer, llvm::Align(4)), b_.getInt32(0));
}

}  // namespace gridloom::exec
