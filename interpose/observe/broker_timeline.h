// The broker's timing model, which simulates this program together with others': every work goes there through a
// channel (scheduler/protocol/frames.h), what kernels did as it happens.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "interpose/observe/timeline.h"
#include "scheduler/protocol/frames.h"
#include "sim/trace/byte_stream.h"

namespace gridloom::session {

/// The program's end of the channel. Any thread sends, and waits for the answers to its questions.
class TimingChannel {
 public:
  explicit TimingChannel(protocol::Fd socket);
  ~TimingChannel();

  void Send(protocol::FrameKind kind, const trace::ByteWriter& content);
  struct Answer {
    protocol::FrameAnswer answer = protocol::FrameAnswer::kUnknown;
    double ns = 0;
    std::vector<std::uint8_t> rest;
  };
  /// `content` follows the question's number. Nothing when the broker is gone.
  std::optional<Answer> Ask(protocol::FrameKind kind, const trace::ByteWriter& content);
  bool lost() const;

 private:
  void ReadAnswers();

  const protocol::Fd socket_;
  std::mutex send_mutex_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  bool lost_ = false;
  std::uint64_t questions_ = 0;
  std::unordered_map<std::uint64_t, Answer> answers_;
  std::thread reader_;
};

class BrokerTimeline final : public Timeline {
 public:
  /// `device`: the one that the broker shares.
  BrokerTimeline(protocol::Fd socket, sim::DeviceSpec device, std::string policy);

  void Add(const trace::HostAction& action, std::uint64_t storage) override;
  std::shared_ptr<trace::CtaSink> AddLaunch(const trace::HostAction& action, const trace::KernelCode& code,
                                            const trace::LaunchShape& shape, bool opens) override;
  void CloseGroup(std::uint64_t group) override;
  bool Wait(std::span<const std::uint64_t> works, bool sees) override;
  std::optional<bool> Ask(std::span<const std::uint64_t> works, bool sees) override;
  std::optional<double> EndNs(std::uint64_t work) override;
  std::string problem() const override;
  TimingTable Finish() override;

 private:
  std::optional<TimingChannel::Answer> AskAbout(protocol::FrameKind kind, std::span<const std::uint64_t> works);

  const std::shared_ptr<TimingChannel> channel_;
  const sim::DeviceSpec device_;
  const std::string policy_;
  std::unordered_map<const trace::KernelCode*, std::uint32_t> codes_;  ///< by their numbers; works come one at a time
};

}  // namespace gridloom::session
