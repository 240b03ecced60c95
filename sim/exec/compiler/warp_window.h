// Where accesses may go without asking the runtime, and the checks that they do.
#pragma once

#include "sim/exec/compiler/warp_builder.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

class HelperCalls;

/// What an access may touch without a call of the runtime.
struct Window {
  llvm::Value* low;    ///< subtracted from the address before the check (null: 0)
  llvm::Value* limit;  ///< bytes
  llvm::Value* host;   ///< added to the address to get a host address (null: it is one)
  unsigned key;
  bool changes = false;  ///< low and limit are of this moment (memcheck)
};

/// A load, store or atomic of one lane.
struct Access {
  llvm::Type* element;
  unsigned count, element_bytes, bytes, align;  ///< align: what the program promises, a power of two
  Space space;
  bool strong;
  llvm::Value* line;
  std::uint32_t site = 0;      ///< memcheck's number of a global access
  llvm::Value* imm = nullptr;  ///< SlowAccessImm where it is not known at compile time
  bool checked = false;        ///< a read that memcheck has nothing against
};

/// What no instruction of ours does: elements of 16 bytes, long vectors, and strong vectors that must be seen whole.
bool LeftToHelper(const Access& access);

class MemoryWindows : Emitter {
 public:
  MemoryWindows(WarpBuilder& w, HelperCalls& calls, WarpValues& values) : Emitter(w), calls_(calls), values_(values) {}

  Window WindowOf(Space space);
  Window WindowOf(const llvm::CallInst& call, Access& access);
  Value* ScaledLimit(const Window& window, unsigned shift, std::uint64_t span);
  bool ProvenInRange(const Value* address, const Access& access) const;
  Value* LinearInRange(const Linear& linear, const Access& access, const Window& window);
  Value* HostLanes(Value* addresses, const Access& access, const Window& window);
  Value* SharedChecked(Value* address, const Access& access, AccessKind kind);
  Access AccessOf(const llvm::CallInst& call, const MarkerInfo& info);

 private:
  Window SiteWindow(const llvm::CallInst& call, Access& access);
  llvm::Function* SharedCheckFunction(llvm::Type* offsets_type);

  HelperCalls& calls_;
  WarpValues& values_;
};

}  // namespace gridloom::exec
