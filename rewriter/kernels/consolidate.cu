// What programs call in the place of the device runtime library behind the pass `consolidate` (passes/consolidate.h).
// The pass adds for each kernel a function that calls one of these with what it has to know of the kernel.
#include "rewriter/kernels/device.h"
#include "rewriter/kernels/launch_records.h"

namespace gridloom::passes {

using namespace kernels;
using Address = std::uint64_t;

extern "C" {
struct Extent {
  Word x, y, z;
};
/// The library's own functions; the pass gives them the names that the program has them under.
__device__ void* gridloom_runtime_buffer(Address kernel, Extent grid, Extent block, Word shared);
__device__ Word gridloom_runtime_launch(void* buffer, Address stream);
__device__ void* malloc(Address bytes);
__device__ void free(void* memory);

/// A launch as it was: `behind` a slot are its parameters.
__device__ __attribute__((noinline)) Word gridloom_launch_itself(const LaunchSlot* behind, Address stream,
                                                                 Address kernel, Word param_bytes);
}

namespace {

constexpr Word kNoMemory = 2;                              // cudaErrorMemoryAllocation
constexpr Address kForgotten = 4;                          // cudaStreamFireAndForget
constexpr Address kNoStream = 0x9c0fe5a13b7d2e61;          // aggregate_functions.h
constexpr Word kMostCtas = 65536, kMostOfList = 1u << 30;  // of one launch in a table, of one for a list of tables
constexpr Word kMostShared = 49152, kBlockBits = 11, kBlockMask = (1u << kBlockBits) - 1;

/// Pointers whose space the code knows, so that instructions for it are used.
template <typename Object>
__device__ Object* InGlobal(Object* pointer) {
  return (Object*)(__attribute__((address_space(1))) Object*)reinterpret_cast<Address>(pointer);
}
template <typename Object>
__device__ Object* InLocal(Object* pointer) {
  Address local;
  asm("cvta.to.local.u64 %0, %1;" : "=l"(local) : "l"(pointer));
  return (Object*)(__attribute__((address_space(5))) Object*)local;
}
__device__ const LaunchSlot& SlotOf(const LaunchSlot* behind) { return InLocal(behind)[-1]; }

/// Parameters: both addresses are aligned to 16 bytes, and not a byte more is written.
__device__ void Copy(void* to, const void* from, Word bytes) {
  auto* out = static_cast<unsigned char*>(to);
  auto* in = static_cast<const unsigned char*>(from);
  for (; bytes >= 8; bytes -= 8, out += 8, in += 8)
    *reinterpret_cast<Address*>(out) = *reinterpret_cast<const Address*>(in);
  if ((bytes & 4) != 0) {
    *reinterpret_cast<Word*>(out) = *reinterpret_cast<const Word*>(in);
    out += 4;
    in += 4;
  }
  for (bytes &= 3; bytes != 0; --bytes) *out++ = *in++;
}

struct MergedParameters {
  LaunchTable* list;
  Word tables;  ///< 0: the list is a table
};

/// One launch for all in a list of tables, or in a table.
__device__ Word LaunchMerged(Address merged, LaunchTable& list, Word tables, Word ctas, Word shape, Word shared) {
  const Extent block{shape & kBlockMask, shape >> kBlockBits & kBlockMask, shape >> 2 * kBlockBits};
  list.threads = std::uint64_t{ctas} * (block.x * block.y * block.z);
  DeviceFence();
  void* const made = gridloom_runtime_buffer(merged, {ctas, 1, 1}, block, shared);
  if (made == nullptr) return kNoMemory;
  auto* const buffer = InGlobal(static_cast<MergedParameters*>(made));
  buffer->list = &list;
  buffer->tables = tables;
  return gridloom_runtime_launch(made, kForgotten);
}

__device__ Word Product(Word a, Word b) {
  const std::uint64_t product = std::uint64_t{a} * b;
  return product < kMostCtas ? static_cast<Word>(product) : kMostCtas;
}

/// What a launch in a table is: none where the grid or the block is out of the ordinary.
struct Ordinary {
  Word ctas = 0, threads = 0, shape = 0;  ///< `threads`: of a block
  __device__ Ordinary(const LaunchSlot& slot, Word most_threads) {
    const Word all = Product(Product(slot.grid[0], slot.grid[1]), slot.grid[2] < kMostCtas ? slot.grid[2] : kMostCtas);
    const Word x = slot.block[0], y = slot.block[1], z = slot.block[2];
    const bool fits =
        all - 1 < kMostCtas - 1 && x - 1 < 1024 && y - 1 < 1024 && z - 1 < 64 && slot.shared <= kMostShared;
    if (!fits || x * y * z > most_threads) return;
    ctas = all;
    threads = x * y * z;
    shape = (z << kBlockBits | y) << kBlockBits | x;
  }
};

/// Lanes that are here together and launch blocks of one shape.
struct Group {
  Word lanes, first, count;
  __device__ bool leads() const { return Lane() == first; }
};

/// Devices from sm_70 on find them by an instruction, older ones one shape after the other, each that of the first lane
/// that is left.
template <bool kMatches>
__device__ Group FindGroup(Word shape, Word shared) {
  Word lanes = 0;
  if constexpr (kMatches) {
    lanes = Match(Address{shared} << 32 | shape, ActiveLanes());
  } else {
    for (bool found = false; !found;) {
      const Word here = ActiveLanes(), first = LowestBit(here);
      found = Shuffle(shape, first, here) == shape;
      found &= Shuffle(shared, first, here) == shared;
      lanes = Vote(found, here);
    }
  }
  return {lanes, LowestBit(lanes), CountBits(lanes)};
}

/// The first lane of the group makes a table, and each puts its launch there. Null where there is no memory.
__device__ LaunchTable* FillTable(const Group& group, const LaunchSlot& slot, const Ordinary& launch,
                                  Word param_bytes) {
  const Address head = (sizeof(LaunchTable) + group.count * sizeof(Word) + 15) / 16 * 16;
  const Address record_bytes = sizeof(LaunchRecord) + (param_bytes + 15) / 16 * 16;
  Address made = 0;
  if (group.leads()) {
    made = reinterpret_cast<Address>(malloc(head + group.count * record_bytes));
    if (made != 0) *InGlobal(reinterpret_cast<LaunchTable*>(made)) = {0, 0, 0, 0, launch.shape, slot.shared};
  }
  const Word low = Shuffle(static_cast<Word>(made), group.first, group.lanes);
  made = Address{Shuffle(static_cast<Word>(made >> 32), group.first, group.lanes)} << 32 | low;
  if (made == 0) return nullptr;
  auto* const table = InGlobal(reinterpret_cast<LaunchTable*>(made));
  WaitForWarp(group.lanes);
  // Both numbers at once: how many launches there are, in the upper half, and their CTAs.
  const Address before = Add(*reinterpret_cast<Address*>(table), Address{1} << 32 | launch.ctas);
  const auto number = static_cast<Word>(before >> 32);
  reinterpret_cast<Word*>(table + 1)[number] = static_cast<Word>(before);
  auto* const record =
      reinterpret_cast<LaunchRecord*>(reinterpret_cast<unsigned char*>(table) + head + number * record_bytes);
  *record = {{slot.grid[0], slot.grid[1], slot.grid[2]}, 0};
  Copy(record + 1, &slot + 1, param_bytes);
  DeviceFence();
  WaitForWarp(group.lanes);
  return table;
}

__device__ bool IsOthers(Address stream) { return stream != kNoStream && stream != kForgotten; }

/// A launch into no stream becomes one of a table, which `then(group, table, launch)` does something with; true when
/// that is all. Else it is made as it was, as are those of other streams and out of the ordinary.
template <bool kMatches, typename Then>
__device__ Word Gather(const LaunchSlot* behind, Address stream, Address kernel, Word param_bytes, Word most_threads,
                       bool alone, Then then) {
  const LaunchSlot& slot = SlotOf(behind);
  if (!IsOthers(stream)) {
    stream = kForgotten;
    if (const Ordinary launch(slot, most_threads); launch.ctas != 0) {
      const Group group = FindGroup<kMatches>(launch.shape, slot.shared);
      if (group.count != 1 || alone) {
        LaunchTable* const table = FillTable(group, slot, launch, param_bytes);
        if (table != nullptr && then(group, *InGlobal(table), launch)) return 0;
      }
    }
  }
  return gridloom_launch_itself(behind, stream, kernel, param_bytes);
}

/// One launch for the lanes of a warp that come here together. One by itself is made as it was, and so is each where
/// that one fails.
template <bool kMatches>
__device__ Word LaunchForWarp(const LaunchSlot* behind, Address stream, Address kernel, Word param_bytes,
                              Word most_threads, Address merged) {
  const auto launch = [&](const Group& group, LaunchTable& table, const Ordinary& one) {
    Word failed = 0;
    if (group.leads()) {
      failed = LaunchMerged(merged, table, 0, table.ctas, one.shape, table.shared);
      if (failed != 0) free(&table);
    }
    WaitForWarp(group.lanes);
    return Shuffle(failed, group.first, group.lanes) == 0;
  };
  return Gather<kMatches>(behind, stream, kernel, param_bytes, most_threads, false, launch);
}

/// The table goes into a list, whose tables are launched when the block, or the grid, ends (deferred_launches.h).
template <bool kMatches>
__device__ Word LaunchLater(const LaunchSlot* behind, Address stream, Address kernel, Word param_bytes,
                            Word most_threads, Address* list) {
  const auto keep = [&](const Group& group, LaunchTable& table, const Ordinary&) {
    if (group.leads()) table.next = Exchange(*list, reinterpret_cast<Address>(&table));
    return true;
  };
  return Gather<kMatches>(behind, stream, kernel, param_bytes, most_threads, true, keep);
}

}  // namespace

extern "C" {

__shared__ Word gridloom_grid_place;
/// Of each place, %gridid + 1 of its grid, 0 where none is, and how many of its blocks have ended.
__device__ Address gridloom_grid_ids[kGridPlaces], gridloom_grid_ended[kGridPlaces];
/// It is held while a place is looked for among those that have been used.
__device__ Word gridloom_grid_lock, gridloom_grid_used;

/// What becomes of cudaGetParameterBufferV2.
__device__ LaunchSlot* gridloom_consolidated_buffer(Address, Extent grid, Extent block, Word shared, LaunchSlot* slot) {
  *InLocal(slot) = {{grid.x, grid.y, grid.z}, shared, {block.x, block.y, block.z}, 0};
  return slot + 1;
}

__device__ Word gridloom_launch_itself(const LaunchSlot* behind, Address stream, Address kernel, Word param_bytes) {
  const LaunchSlot& slot = SlotOf(behind);
  void* const buffer = gridloom_runtime_buffer(kernel, {slot.grid[0], slot.grid[1], slot.grid[2]},
                                               {slot.block[0], slot.block[1], slot.block[2]}, slot.shared);
  if (buffer == nullptr) return kNoMemory;
  Copy(InGlobal(buffer), &slot + 1, param_bytes);
  return gridloom_runtime_launch(buffer, stream);
}

/// How many threads a launch has that its launching thread may do; else all bits.
__device__ Word gridloom_small_threads(const LaunchSlot* behind, Address stream, Word most_threads) {
  const Ordinary launch(SlotOf(behind), most_threads);
  return IsOthers(stream) || launch.ctas == 0 ? ~0u : launch.ctas * launch.threads;
}

#define GL_LAUNCH_PARAMETERS \
  const LaunchSlot *behind, Address stream, Address kernel, Word param_bytes, Word most_threads
#define GL_LAUNCH_ARGUMENTS behind, stream, kernel, param_bytes, most_threads

__device__ Word gridloom_launch_for_warp(GL_LAUNCH_PARAMETERS, Address merged) {
  return LaunchForWarp<false>(GL_LAUNCH_ARGUMENTS, merged);
}
__device__ Word gridloom_launch_for_warp_70(GL_LAUNCH_PARAMETERS, Address merged) {
  return LaunchForWarp<true>(GL_LAUNCH_ARGUMENTS, merged);
}
__device__ Word gridloom_launch_for_block(GL_LAUNCH_PARAMETERS, Address list) {
  return LaunchLater<false>(GL_LAUNCH_ARGUMENTS, SharedAt<Address>(list));
}
__device__ Word gridloom_launch_for_block_70(GL_LAUNCH_PARAMETERS, Address list) {
  return LaunchLater<true>(GL_LAUNCH_ARGUMENTS, SharedAt<Address>(list));
}
__device__ Word gridloom_launch_for_grid(GL_LAUNCH_PARAMETERS, Address* lists) {
  return LaunchLater<false>(GL_LAUNCH_ARGUMENTS, InGlobal(lists) + gridloom_grid_place);
}
__device__ Word gridloom_launch_for_grid_70(GL_LAUNCH_PARAMETERS, Address* lists) {
  return LaunchLater<true>(GL_LAUNCH_ARGUMENTS, InGlobal(lists) + gridloom_grid_place);
}

/// Tables of one shape are launched together, as many as make a grid. One alone is launched without a list of tables,
/// as it is when there is no memory for that. There is nobody to be told of a launch that fails.
__device__ void gridloom_launch_list(LaunchTable* list, Address merged) {
  while (list != nullptr) {
    const Word shape = InGlobal(list)->shape, shared = InGlobal(list)->shared;
    // All is read before anything is compared: one thread goes through the list, and each read takes long.
    const auto joins = [&](const LaunchTable& table, Word ctas) {
      return (table.shape == shape) & (table.shared == shared) & (ctas + table.ctas <= kMostOfList);
    };
    const auto next = [](const LaunchTable& table) { return reinterpret_cast<LaunchTable*>(table.next); };
    Word count = 0, ctas = 0;
    for (const LaunchTable* table = list; table != nullptr;) {
      const LaunchTable one = *InGlobal(table);
      const bool fits = joins(one, ctas);
      ctas += fits ? one.ctas : 0;
      count += fits ? 1 : 0;
      table = next(one);
    }
    LaunchTable *all = nullptr, *rest = nullptr;
    if (count > 1) all = static_cast<LaunchTable*>(malloc(sizeof(LaunchTable) + count * sizeof(ListedTable)));
    if (all == nullptr) {
      all = list;
      rest = next(*InGlobal(list));
      ctas = InGlobal(list)->ctas;
      count = 0;
    } else {
      ctas = 0;
      auto* entry = reinterpret_cast<ListedTable*>(all + 1);
      for (LaunchTable *table = list, *after = nullptr; table != nullptr; table = after) {
        const LaunchTable one = *InGlobal(table);
        after = next(one);
        if (joins(one, ctas)) {
          *InGlobal(entry++) = {ctas, 0, reinterpret_cast<Address>(table)};
          ctas += one.ctas;
        } else {
          InGlobal(table)->next = reinterpret_cast<Address>(rest);
          rest = table;
        }
      }
    }
    if (LaunchMerged(merged, *InGlobal(all), count, ctas, shape, shared) != 0) Trap();
    list = rest;
  }
}

/// The place of this block's grid, which takes one if it has none.
__device__ Word gridloom_enter_grid() {
  volatile Address* const ids = gridloom_grid_ids;
  const Address id = GridNumber() + 1;
  while (Exchange(gridloom_grid_lock, 0, 1) != 0) {
  }
  DeviceFence();
  const Word used = *const_cast<volatile Word*>(&gridloom_grid_used);
  Word place = 0, free = used;
  for (; place < used; ++place) {
    const Address its_id = ids[place];
    if (its_id == id) break;
    if (its_id == 0) free = place;
  }
  if (place == used) {
    place = free;
    if (place >= kGridPlaces) Trap();
    if (place == used) *const_cast<volatile Word*>(&gridloom_grid_used) = used + 1;
    ids[place] = id;
    *const_cast<volatile Address*>(&gridloom_grid_ended[place]) = 0;
  }
  DeviceFence();
  Exchange(gridloom_grid_lock, 0);
  return place;
}

/// Whether the block is the last one of its grid to end.
__device__ Word gridloom_leave_grid(Word place) {
  const bool last = Add(gridloom_grid_ended[place], 1) + 1 == BlocksOfGrid();
  DeviceFence();
  return last;
}

__device__ void gridloom_forget_grid(Word place) {
  DeviceFence();
  *const_cast<volatile Address*>(&gridloom_grid_ids[place]) = 0;
}

/// Of a launch whose threads have all read their parameters.
__device__ void gridloom_free_tables(LaunchTable* list, Word tables) {
  const auto* const listed = reinterpret_cast<ListedTable*>(InGlobal(list) + 1);
  for (Word i = 0; i < tables; ++i) free(reinterpret_cast<void*>(listed[i].table));
  free(list);
}
}

}  // namespace gridloom::passes
