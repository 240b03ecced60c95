// A plan of cuFFT: what is transformed, the steps that do it, and their memory.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "interpose/fft/lines.h"

namespace gridloom::fft {

/// What the manual calls the basic and the advanced layout: element (x0, x1, x2) of transform b is at
/// b * dist + ((x0 * embed[1] + x1) * embed[2] + x2) * stride.
struct Layout {
  Index embed[3];
  Index stride, dist;
};

struct Request {
  int rank;
  Index n[3];
  std::optional<Layout> in, out;  ///< none: packed, and padded when a real transform is made in place
  Index batch;
  Number in_number, out_number;
  bool real_in, real_out;  ///< neither: complex to complex
};

enum : int { kForward = -1, kInverse = 1 };

class Plan {
 public:
  Plan() = default;
  Plan(const Plan&) = delete;
  ~Plan();

  Status Make(const Request& request);
  Status Execute(std::uint64_t in, std::uint64_t out, int direction);
  Status SetWorkArea(std::uint64_t address);
  void SetAutoAllocation(bool on) { auto_allocation_ = on; }
  void SetStream(cuda::CUstream stream) { stream_ = stream; }
  bool made() const { return made_; }
  /// In bytes; of a plan that is made.
  std::size_t work_size() const { return work_size_; }

 private:
  struct Variant {
    std::vector<PlannedStep> steps;
    Index first_at, second_at, size;  ///< of work memory, in bytes
  };
  struct Addresses {
    std::uint64_t in, out, work;
  };
  friend Status WorkSize(const Request& request, std::size_t* bytes);
  static Variant Build(const Request& request, bool in_place, Tables* tables);
  /// Both variants, with what kernels read in device memory.
  Status MakeTables();
  /// The same where they were left out, as the host was to make the plan's transforms.
  Status MakeTablesLate();
  Status Upload(const Tables& tables);
  Status Run(const Variant& variant, Addresses at, int direction) const;
  /// The transform as the host's library makes it, in the plan's stream. None: it cannot, and kernels must.
  std::optional<Status> RunOnHost(Addresses at, int direction) const;
  /// In place, though elements lie elsewhere before and after: through a copy.
  Status RunFromCopy(Addresses at, int direction) const;
  void Free();

  Request request_{};
  bool made_ = false, auto_allocation_ = true;
  Variant outside_{}, inside_{};  ///< out of place, in place
  bool inside_is_safe_ = false;   ///< in place, each line is written where it is read
  cuda::CUcontext context_ = nullptr;
  cuda::CUstream stream_ = nullptr;
  std::mutex late_;  ///< plans are executed by several threads
  std::uint64_t tables_ = 0, own_work_ = 0, work_ = 0;
  std::size_t work_size_ = 0;
};

/// Starts what the host makes in place of kernels. What lies where has been looked at.
Status LaunchWhole(const Whole& whole, cuda::CUstream stream);

/// The work memory that a plan would have.
Status WorkSize(const Request& request, std::size_t* bytes);

/// Plans by their handles.
Status CreatePlan(int* handle);
std::shared_ptr<Plan> FindPlan(int handle);
Status DestroyPlan(int handle);

}  // namespace gridloom::fft
