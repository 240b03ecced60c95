// Makes the calls of a program, and compares what its works saw with what the model says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model.h"

namespace order {

/// What the execution leaves out, to show that it would be noticed.
enum class Sabotage { kNone, kWaits, kEvents, kStreams, kDevice, kLegacy, kFree };

struct Limits {
  double patience = 20;   ///< seconds after which a program does not end
  double pause = 0.0005;  ///< seconds that another thread is given to be in a call that it is about to make
  Sabotage sabotage = Sabotage::kNone;
};

/// Memory, streams and threads that programs share, one after the other.
class Stage {
 public:
  Stage();
  ~Stage();
  Stage(const Stage&) = delete;

  /// What went wrong, nothing if all was right. A program that does not end, not even when all gates are opened, ends
  /// the process with exit code 3, after `report` was called with what is known.
  std::vector<std::string> Play(const Model& model, const Limits& limits,
                                void (*report)(const std::vector<std::string>&));

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace order
