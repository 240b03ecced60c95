// The virtual GPU's answer to the CUDA runtime's start-up check. What it is, why it is needed and where the facts are
// public: docs/design/runtime-handshake.md. Left out by -DGRIDLOOM_RUNTIME_HANDSHAKE=OFF. On a real GPU the real driver
// answers and none of this is used.
#include <pthread.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "interpose/base/settings.h"
#include "interpose/objects/process.h"
#include "interpose/session/runtime_tables.h"

namespace gridloom::session {

#ifdef GRIDLOOM_RUNTIME_HANDSHAKE

namespace {

// RFC 1319, section 3.2: a permutation of 0..255 made from the digits of pi.
constexpr std::uint8_t kPi[256] = {
    41,  46,  67,  201, 162, 216, 124, 1,   61,  54,  84,  161, 236, 240, 6,   19,  98,  167, 5,   243, 192, 199,
    115, 140, 152, 147, 43,  217, 188, 76,  130, 202, 30,  155, 87,  60,  253, 212, 224, 22,  103, 66,  111, 24,
    138, 23,  229, 18,  190, 78,  196, 214, 218, 158, 222, 73,  160, 251, 245, 142, 187, 47,  238, 122, 169, 104,
    121, 145, 21,  178, 7,   63,  148, 194, 16,  137, 11,  34,  95,  33,  128, 127, 93,  154, 90,  144, 50,  39,
    53,  62,  204, 231, 191, 247, 151, 3,   255, 25,  48,  179, 72,  165, 181, 209, 215, 94,  146, 42,  172, 86,
    170, 198, 79,  184, 56,  210, 150, 164, 125, 182, 118, 252, 107, 226, 156, 116, 4,   241, 69,  157, 112, 89,
    100, 113, 135, 32,  134, 91,  207, 101, 230, 45,  168, 2,   27,  96,  37,  173, 174, 176, 185, 246, 28,  70,
    97,  105, 52,  64,  126, 15,  85,  71,  163, 35,  221, 81,  175, 58,  195, 92,  249, 206, 186, 197, 234, 38,
    44,  83,  13,  110, 133, 40,  132, 9,   211, 223, 205, 244, 65,  129, 77,  82,  106, 220, 55,  200, 108, 193,
    171, 250, 36,  225, 123, 8,   12,  189, 177, 74,  120, 136, 149, 139, 227, 99,  232, 109, 233, 203, 213, 254,
    59,  0,   29,  57,  242, 239, 183, 14,  102, 88,  208, 228, 166, 119, 114, 248, 235, 117, 75,  10,  49,  68,
    80,  180, 143, 237, 31,  26,  219, 153, 141, 51,  159, 17,  131, 20,
};

constexpr std::uint8_t kKey[16] = {0x14, 0x6A, 0xDD, 0xAE, 0x53, 0xA9, 0xA7, 0x52,
                                   0xAA, 0x08, 0x41, 0x36, 0x0B, 0xF5, 0x5A, 0x9F};
constexpr std::uint64_t kFixedFirst[2] = {0x3341181C03CB675C, 0x1841181C03CB675C};
constexpr std::uint64_t kFixedSecond = 0x8ED383AA1F4CD1E8;

/// Little-endian fields one after the other, without padding.
class Message {
 public:
  template <typename T>
  void Add(const T& value) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(T));
  }
  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace

void Md2(std::span<const std::uint8_t> message, std::uint8_t digest[16]) {
  std::vector<std::uint8_t> text(message.begin(), message.end());
  const std::size_t padding = 16 - text.size() % 16;
  text.insert(text.end(), padding, static_cast<std::uint8_t>(padding));
  std::uint8_t checksum[16] = {};
  std::uint8_t last = 0;
  for (std::size_t at = 0; at < text.size(); at += 16) {
    for (std::size_t i = 0; i < 16; ++i) last = checksum[i] ^= kPi[text[at + i] ^ last];
  }
  text.insert(text.end(), checksum, checksum + 16);
  std::uint8_t state[48] = {};
  for (std::size_t at = 0; at < text.size(); at += 16) {
    for (std::size_t i = 0; i < 16; ++i) {
      state[16 + i] = text[at + i];
      state[32 + i] = static_cast<std::uint8_t>(text[at + i] ^ state[i]);
    }
    std::uint8_t carry = 0;
    for (unsigned round = 0; round < 18; ++round) {
      for (std::uint8_t& byte : state) carry = byte ^= kPi[carry];
      carry = static_cast<std::uint8_t>(carry + round);
    }
  }
  std::memcpy(digest, state, 16);
}

void HmacMd2(std::span<const std::uint8_t> key, std::span<const std::uint8_t> message, std::uint8_t digest[16]) {
  std::vector<std::uint8_t> inner(16, 0x36), outer(16, 0x5C);  // keys of at most one block
  for (std::size_t i = 0; i < key.size() && i < 16; ++i) {
    inner[i] ^= key[i];
    outer[i] ^= key[i];
  }
  inner.insert(inner.end(), message.begin(), message.end());
  Md2(inner, digest);
  outer.insert(outer.end(), digest, digest + 16);
  Md2(outer, digest);
}

bool AnswerHandshake(std::uint32_t version, std::uint64_t unix_seconds, const void* interface_table,
                     const void* check_table, std::uint8_t result[16]) {
  if (version % 10 < 2) {
    std::memcpy(result, &kFixedFirst[version % 10], 8);
    std::memcpy(result + 8, &kFixedSecond, 8);
    return true;
  }
  Message message;
  message.Add(static_cast<std::uint32_t>(DriverVersion()));
  message.Add(version);
  message.Add(static_cast<std::uint32_t>(getpid()));
  message.Add(static_cast<std::uint32_t>(pthread_self()));
  message.Add(interface_table);
  message.Add(check_table);
  message.Add(static_cast<const void* const*>(check_table)[1]);  // the slot's value, not a local alias of the function
  message.Add(unix_seconds);
  const Process& process = Process::Get();
  for (std::size_t i = 0; i < process.device_count(); ++i) {
    const Device& device = *process.FindDevice(static_cast<int>(i));
    message.Add(device.uuid());
    message.Add(static_cast<std::uint32_t>(Device::kPciDomain));
    message.Add(static_cast<std::uint32_t>(device.pci_bus()));
    message.Add(static_cast<std::uint32_t>(Device::kPciDevice));
  }
  HmacMd2(kKey, message.bytes(), result);
  return true;
}

#else

bool AnswerHandshake(std::uint32_t, std::uint64_t, const void*, const void*, std::uint8_t*) { return false; }

#endif

}  // namespace gridloom::session
