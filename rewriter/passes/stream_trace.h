// The way back from a value to where it comes from, through registers, a thread's own memory and the arguments of
// calls.
#pragma once

#include <set>
#include <vector>

#include "rewriter/passes/stream_handles.h"

namespace gridloom::passes {

class StreamTrace {
 public:
  /// `made`: the streams that the function makes. One that is not refused is always made, so that its slot has no older
  /// value.
  StreamTrace(const analysis::Cfg& cfg, ThreadMemory& memory, const std::vector<MadeStream>& made)
      : cfg_(cfg), memory_(memory), made_(made) {}

  /// Where the value of a call's argument of `bytes` may come from.
  std::vector<StreamSource> Argument(std::uint32_t call, std::size_t number, std::uint32_t bytes);

 private:
  /// A register, or a place in memory.
  struct Item {
    const ptx::Variable* variable = nullptr;
    std::uint32_t index = 0;
    std::int64_t offset = 0;
    bool memory = false;
    auto operator<=>(const Item&) const = default;
  };
  struct Search {
    Item item;
    analysis::BlockId block;
    std::uint32_t end;  ///< instructions before this one are looked at
  };

  void Add(StreamSource source);
  void Unknown(std::string why) { Add({.kind = StreamSource::Kind::kUnknown, .why = std::move(why)}); }
  void Value(const ptx::Operand& operand, std::uint32_t at);
  void Memory(const Place& place, std::uint32_t at);
  void SearchBack(const Search& search);
  bool FromRegister(const Item& item, std::uint32_t at);
  bool FromMemory(const Item& item, std::uint32_t at);
  void FromLoad(const ptx::Instruction& load, std::uint32_t at);

  const analysis::Cfg& cfg_;
  ThreadMemory& memory_;
  const std::vector<MadeStream>& made_;
  std::uint32_t bytes_ = 8;
  std::vector<Search> searches_;
  std::set<std::pair<Item, analysis::BlockId>> seen_;
  std::vector<StreamSource> sources_;
};

}  // namespace gridloom::passes
