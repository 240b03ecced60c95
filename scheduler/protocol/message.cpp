#include "scheduler/protocol/message.h"

#include <cmath>
#include <cstring>

namespace gridloom::protocol {
namespace {

constexpr std::uint32_t kMagic = 0x31424c47;  // "GLB1"

struct Header {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  MessageType type = MessageType::kHello;
  std::uint32_t bytes = 0;  ///< of the message, this header included
  std::uint32_t zero = 0;
};

struct RawHello {
  Header header;
  char tenant[64] = {};
  char token[256] = {};
  char program[128] = {};
};

struct RawWelcome {
  Header header;
  std::uint32_t session = 0;
  std::uint32_t spin_us = 0;
  std::uint64_t memory_bytes = 0;
  std::uint32_t timing = 0;
  std::uint32_t zero = 0;
  char tenant[64] = {};
  char device[kMostDeviceName + 1] = {};  // a path, where the device is a file's
  char policy[32] = {};
};

struct RawText {
  Header header;
  std::uint32_t code = 0;
  std::uint32_t more = 0;  // the text follows
};

struct RawRequest {
  Header header;
  std::uint32_t verb = 0;
  std::uint32_t fields = 0;
  double weight = 0;
  double cap = 0;
  std::int32_t priority = 0;
  std::uint32_t in_flight = 0;
  std::uint64_t memory_bytes = 0;
  char target[64] = {};
};

static_assert(sizeof(Header) == 16 && sizeof(RawHello) == 464 && sizeof(RawWelcome) == 648 && sizeof(RawText) == 24 &&
              sizeof(RawRequest) == 120);

template <typename Raw>
std::vector<std::byte> Bytes(Raw& raw, MessageType type, std::string_view tail = {}) {
  raw.header.type = type;
  raw.header.bytes = static_cast<std::uint32_t>(sizeof raw + tail.size());
  std::vector<std::byte> bytes(sizeof raw + tail.size());
  std::memcpy(bytes.data(), &raw, sizeof raw);
  if (!tail.empty()) std::memcpy(bytes.data() + sizeof raw, tail.data(), tail.size());
  return bytes;
}

template <typename Raw>
Result<Raw> Copy(std::span<const std::byte> bytes, bool exact = true) {
  if (bytes.size() < sizeof(Raw) || (exact && bytes.size() != sizeof(Raw))) {
    return Error{"a message of " + std::to_string(bytes.size()) + " bytes; its kind has " +
                 std::to_string(sizeof(Raw))};
  }
  Raw raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  return raw;
}

template <std::size_t N>
std::string Get(const char (&field)[N]) {
  return FieldText(field, N);
}

Result<Message> ParseText(std::span<const std::byte> bytes, MessageType type) {
  GL_TRY(raw, Copy<RawText>(bytes, false));
  const auto* const tail = reinterpret_cast<const char*>(bytes.data()) + sizeof raw;
  if (bytes.size() - sizeof raw > kMaxText) return Error{"a text that is too long"};
  return Message(Text{type, raw.code, raw.more != 0, std::string(tail, bytes.size() - sizeof raw)});
}

Result<Message> ParseRequest(std::span<const std::byte> bytes) {
  GL_TRY(raw, Copy<RawRequest>(bytes));
  if (raw.verb < static_cast<std::uint32_t>(Verb::kPs) || raw.verb > static_cast<std::uint32_t>(Verb::kShutdown)) {
    return Error{"a request of unknown kind " + std::to_string(raw.verb)};
  }
  if (!std::isfinite(raw.weight) || !std::isfinite(raw.cap)) return Error{"a request with a number that is none"};
  return Message(Request{.verb = static_cast<Verb>(raw.verb),
                         .target = Get(raw.target),
                         .fields = raw.fields,
                         .weight = raw.weight,
                         .cap = raw.cap,
                         .priority = raw.priority,
                         .in_flight = raw.in_flight,
                         .memory_bytes = raw.memory_bytes});
}

}  // namespace

Result<Message> ParseMessage(std::span<const std::byte> bytes) {
  GL_TRY(header, Copy<Header>(bytes, false));
  if (header.magic != kMagic) return Error{"what came in is no message of the broker's protocol"};
  if (header.version != kVersion) {
    return Error{"the other side speaks version " + std::to_string(header.version) +
                 " of the protocol, this one version " + std::to_string(kVersion)};
  }
  if (header.bytes != bytes.size()) return Error{"a message with a wrong length"};
  switch (header.type) {
    case MessageType::kHello: {
      GL_TRY(raw, Copy<RawHello>(bytes));
      // A secret is compared and never shown: its bytes are what they are.
      return Message(
          Hello{Get(raw.tenant), std::string(raw.token, strnlen(raw.token, sizeof raw.token)), Get(raw.program)});
    }
    case MessageType::kWelcome: {
      GL_TRY(raw, Copy<RawWelcome>(bytes));
      return Message(Welcome{raw.session, raw.spin_us, raw.timing != 0, raw.memory_bytes, Get(raw.tenant),
                             Get(raw.device), Get(raw.policy)});
    }
    case MessageType::kRefused:
    case MessageType::kGoodbye:
    case MessageType::kReply: return ParseText(bytes, header.type);
    case MessageType::kRequest: return ParseRequest(bytes);
  }
  return Error{"a message of unknown kind " + std::to_string(static_cast<unsigned>(header.type))};
}

std::vector<std::byte> Format(const Hello& hello) {
  RawHello raw;
  SetField(raw.tenant, hello.tenant);
  SetField(raw.token, hello.token);
  SetField(raw.program, hello.program);
  return Bytes(raw, MessageType::kHello);
}

std::vector<std::byte> Format(const Welcome& welcome) {
  RawWelcome raw;
  raw.session = welcome.session;
  raw.spin_us = welcome.spin_us;
  raw.memory_bytes = welcome.memory_bytes;
  raw.timing = welcome.timing ? 1 : 0;
  SetField(raw.tenant, welcome.tenant);
  SetField(raw.device, welcome.device);
  SetField(raw.policy, welcome.policy);
  return Bytes(raw, MessageType::kWelcome);
}

std::vector<std::byte> Format(const Text& text) {
  RawText raw;
  raw.code = text.code;
  raw.more = text.more ? 1 : 0;
  return Bytes(raw, text.type, std::string_view(text.text).substr(0, kMaxText));
}

std::vector<std::byte> Format(const Request& request) {
  RawRequest raw;
  raw.verb = static_cast<std::uint32_t>(request.verb);
  raw.fields = request.fields;
  raw.weight = request.weight;
  raw.cap = request.cap;
  raw.priority = request.priority;
  raw.in_flight = request.in_flight;
  raw.memory_bytes = request.memory_bytes;
  SetField(raw.target, request.target);
  return Bytes(raw, MessageType::kRequest);
}

}  // namespace gridloom::protocol
