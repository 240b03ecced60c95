// Who looks at what the program does: the observers of one process, which its Process owns and hands down with itself.
// Each is made when it is first asked for, as a program that gives the device nothing leaves no trace file. One that is
// made needs those above it in the list below, and no other.
#pragma once

#include <atomic>

#include "interpose/base/once.h"
#include "rewriter/support/result.h"

namespace gridloom::session {

class BrokerLink;
class FillOrder;
class HostTimeline;
class MemcheckLog;
class Process;
class RangeCapture;
class RangeChecks;
class Tracing;

class Observers {
 public:
  explicit Observers(Process& process) : process_(process) {}
  Observers(const Observers&) = delete;
  Observers& operator=(const Observers&) = delete;

  Process& process() const { return process_; }

  /// The process's place at a broker; null while it has joined none.
  BrokerLink* broker() const { return broker_.load(std::memory_order_acquire); }
  /// Joins the broker that the settings name, if they name one; once, before there are devices. An error when it cannot
  /// be joined and the program is not to go on without it.
  Status JoinBroker();
  /// In a forked child: the connection is the parent's.
  void AbandonBroker();

  MemcheckLog& memcheck();
  /// Null when nothing is traced: not wanted, the file cannot be written, or this process is a child of the one that
  /// writes it.
  Tracing* tracing();
  /// Null when it is not wanted, or the kernel does not let us (which is said once); in a child process.
  FillOrder* fill_order();
  /// Null unless ranges are to be checked.
  RangeChecks* range_checks();
  /// Null unless ranges are wanted.
  RangeCapture* range_capture();
  /// Null when neither a trace nor timing is wanted, and at exit when both are complete. There is a device.
  HostTimeline* timeline();

 private:
  Process& process_;
  std::atomic<BrokerLink*> broker_{nullptr};  ///< never destroyed: threads may use it at exit
  Once<MemcheckLog> memcheck_;
  Once<Tracing> tracing_;
  Once<FillOrder> fill_order_;
  Once<RangeChecks> range_checks_;
  Once<RangeCapture> range_capture_;
  Once<HostTimeline> timeline_;
};

}  // namespace gridloom::session
