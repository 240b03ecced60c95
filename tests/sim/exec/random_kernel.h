// Random kernels for differential tests: arbitrary control-flow graphs (irreducible ones, divergent exits, nested and
// overlapping loops) over a few integer registers, as PTX text and as the same program run thread by thread on the
// host. Termination is by a per-thread step counter that every block tests.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace gridloom::test {

/// GRIDLOOM_TEST_KERNELS=N: more or fewer random kernels than the default of a test.
std::uint64_t RandomKernels(std::uint64_t by_default);

struct RandomKernelOptions {
  unsigned blocks = 12;
  unsigned operations = 5;    ///< most instructions per block
  unsigned step_limit = 200;  ///< blocks a thread runs before it leaves
  bool uniform_bias = true;   ///< about half of the branches depend on values equal in the whole CTA
  /// Grids have three dimensions, and any block may ask where its CTA is: by special registers in all the ways PTX has,
  /// in a function, and through a pointer to one; threads may also leave in the middle, here and in functions.
  bool grid_reads = false;
  /// Addresses depend on data. Without, kernels are regular (docs/ranges.md).
  bool data_addresses = true;
};

/// Where a thread is: a row of `ntid` threads, in a CTA of a grid.
struct RandomPlace {
  std::uint32_t tid = 0, ntid = 1;
  std::array<std::uint32_t, 3> cta{}, grid{1, 1, 1};
  std::uint32_t cta_number() const { return cta[0] + grid[0] * (cta[1] + grid[1] * cta[2]); }
};

class RandomKernel {
 public:
  static constexpr unsigned kRegisters = 8;
  static constexpr unsigned kInputs = 64;

  RandomKernel(std::uint64_t seed, const RandomKernelOptions& options);

  /// Entry `random_kernel(.u64 in, .u64 out, .u32 seed)`; out has kRegisters words per thread of the grid.
  std::string Ptx() const;
  /// What a thread did: the blocks B0, B1 … it entered, and its accesses to global memory, those at the end included.
  struct Log {
    struct Access {
      bool store;
      bool input;            ///< to `in`, else to the thread's own part of `out`
      std::uint32_t offset;  ///< bytes from there
    };
    std::vector<unsigned> blocks;
    std::vector<Access> accesses;
  };
  /// What a thread writes, over what was there before.
  std::vector<std::uint32_t> Run(const RandomPlace& place, std::uint32_t seed, const std::vector<std::uint32_t>& input,
                                 std::vector<std::uint32_t> out_before, Log* log = nullptr) const;
  /// Thread `tid` of CTA `ctaid` of a grid of one dimension (without grid_reads).
  std::vector<std::uint32_t> Run(std::uint32_t tid, std::uint32_t ctaid, std::uint32_t ntid, std::uint32_t seed,
                                 const std::vector<std::uint32_t>& input, std::vector<std::uint32_t> out_before,
                                 Log* log = nullptr) const;
  unsigned block_count() const { return static_cast<unsigned>(blocks_.size()); }

 private:
  enum class Op : std::uint8_t {
    kAdd,
    kSub,
    kMul,
    kXor,
    kAnd,
    kShr,
    kShl,
    kMin,
    kSelect,
    kLoad,
    kLoadThread,
    kStore,
    kDiv,
    kRem,
    kPopc,
    kGrid,
    kGridCall,
    kGridPointer,
    kExit,
    kExitCall
  };
  static constexpr unsigned kPlainOps = 15;
  struct Operation {
    Op op;
    unsigned dst, a, b;
    std::uint32_t constant;
    bool use_constant;
  };
  struct Block {
    std::vector<Operation> operations;
    unsigned compare_a = 0;  ///< branch when (r[compare_a] & mask) < bound
    std::uint32_t mask = 0, bound = 0;
    unsigned on_true = 0, on_false = 0;  ///< block numbers; blocks.size() = exit
    bool conditional = true;
  };

  std::string Text(const Operation& operation) const;
  static std::string GridText(const Operation& operation);
  static unsigned GridAnswer(const Operation& operation);  ///< which of %ctaid.x, .y, .z, %nctaid.x, .y, .z it asks for
  std::string Functions() const;
  static void LogAccess(const Operation& operation, std::uint32_t a, Log& log);
  std::vector<Block> blocks_;
  unsigned step_limit_;
  bool grid_reads_;
};

}  // namespace gridloom::test
