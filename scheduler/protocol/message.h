// Messages on the broker's socket (AF_UNIX, SOCK_SEQPACKET: one message, one datagram). Fixed layouts; what comes in is
// copied into one of them and checked before anybody looks at it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/protocol/record.h"

namespace gridloom::protocol {

inline constexpr std::size_t kMaxMessageBytes = 16 * 1024;
inline constexpr std::size_t kMaxText = 12 * 1024;

enum class MessageType : std::uint16_t {
  kHello = 1,  ///< tenant: who it is. The answer is kWelcome with two descriptors (segment, doorbell), or kRefused
  kWelcome = 2,
  kRefused = 3,  ///< broker: why; the connection ends
  kGoodbye = 4,  ///< broker: the session is over, and why
  kRequest = 5,  ///< operator; the answer is one kReply or more
  kReply = 6,
};

struct Hello {
  std::string tenant;   ///< wanted name; empty: whoever the broker knows by the user's number
  std::string token;    ///< the secret of that tenant; empty: none
  std::string program;  ///< for listings
};

/// Longest name of a device, or path of its file, in a welcome.
inline constexpr std::size_t kMostDeviceName = 511;

struct Welcome {
  std::uint32_t session = 0;
  std::uint32_t spin_us = 0;  ///< how long to spin before sleeping
  bool timing = false;        ///< the broker simulates time: a third descriptor comes along, a channel (frames.h)
  std::uint64_t memory_bytes = 0;
  std::string tenant;
  std::string device;  ///< a name, or the absolute path of its file
  std::string policy;
};

/// kRefused, kGoodbye, kReply.
struct Text {
  MessageType type = MessageType::kReply;
  std::uint32_t code = 0;  ///< kReply: 0 when it was done; kGoodbye: GoodbyeReason
  bool more = false;       ///< kReply: another one follows
  std::string text;
};

enum class GoodbyeReason : std::uint32_t {
  kShutdown = 0,   ///< the broker ends in good order; it may come back
  kKilled = 1,     ///< an operator ended the session
  kViolation = 2,  ///< the session broke the protocol
};

enum class Verb : std::uint32_t { kPs = 1, kLimits = 2, kKill = 3, kPolicy = 4, kShutdown = 5 };

/// Which fields of a Request are set.
enum RequestField : std::uint32_t {
  kFieldWeight = 1,
  kFieldPriority = 2,
  kFieldInFlight = 4,
  kFieldMemory = 8,
  kFieldCap = 16
};

struct Request {
  Verb verb = Verb::kPs;
  std::string target;        ///< kLimits: tenant; kKill: tenant, or number of a process; kPolicy: its name
  std::uint32_t fields = 0;  ///< kLimits: RequestField; 0 only shows. kKill: 1 also ends the process
  double weight = 0;
  double cap = 0;  ///< largest part of the device, 0 to 1
  std::int32_t priority = 0;
  std::uint32_t in_flight = 0;
  std::uint64_t memory_bytes = 0;
};

using Message = std::variant<Hello, Welcome, Text, Request>;

/// Reads one datagram; any bytes are fine, most are an error.
Result<Message> ParseMessage(std::span<const std::byte> bytes);

std::vector<std::byte> Format(const Hello& hello);
std::vector<std::byte> Format(const Welcome& welcome);
std::vector<std::byte> Format(const Text& text);
std::vector<std::byte> Format(const Request& request);

}  // namespace gridloom::protocol
