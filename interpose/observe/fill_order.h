// GRIDLOOM_RECORD_ORDER: in which order the program fills the pages of host memory that it copies to the device
// (trace::HostAction::ranks). The kernel tells of the first write to each page, its own writes for read() and the like
// included (userfaultfd, write protection); the program sees nothing of it, and its signals are its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace gridloom::session {

class FillOrder {
 public:
  /// Null when it is not wanted, or the kernel does not let us, which is said.
  static std::unique_ptr<FillOrder> Make();
  /// False in a child of the process whose pages are followed.
  bool of_this_process() const;

  /// Follows pinned or registered memory. `fresh`: the program has not written to it yet.
  void Follow(std::uint64_t address, std::uint64_t bytes, bool fresh);
  void Leave(std::uint64_t address);
  /// Memory is copied from to the device: which write to a page, of all such first writes, brought it, for each 4 KiB
  /// of what is copied; kNever where nobody has written. Empty where that is not known. What is written from now on is
  /// followed anew.
  std::vector<std::uint32_t> Take(const std::byte* source, std::uint64_t bytes);

  static constexpr std::uint32_t kNever = ~std::uint32_t{0};

 private:
  explicit FillOrder(int fd);
  /// Pages that are followed: those that lie in the program's memory as a whole. Others may hold our own.
  struct Block {
    std::uint64_t begin = 0, end = 0;  ///< of the program's memory
    std::uint64_t first = 0;           ///< page
    bool fresh = false;
    std::vector<std::uint32_t> ranks;  ///< by page; 0: nobody has written
  };
  void Main();
  void Note(std::uint64_t address);
  bool Protect(std::uint64_t page, std::uint64_t pages, bool on) const;
  Block* Find(std::uint64_t address);

  const int fd_;
  const int owner_;
  std::mutex mutex_;
  std::map<std::uint64_t, Block> blocks_;  ///< by their begin
  std::uint32_t written_ = 0;              ///< first writes so far
};

}  // namespace gridloom::session
