// What a program and its compile service (service.cpp) say to each other over a socket of type SOCK_SEQPACKET. Texts
// and objects travel as sealed memory files beside the messages. Both ends are of one build: the service checks it
// before it reads anything else.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "rewriter/ptx/ir.h"
#include "rewriter/support/result.h"
#include "sim/exec/compiler/compiler.h"

namespace gridloom::exec::background {

inline constexpr std::size_t kMaxName = 16u << 10;
inline constexpr std::uint64_t kMaxFileBytes = std::uint64_t{512} << 20;
inline constexpr int kServiceSocket = 3;  ///< the descriptor that the service finds it at

struct Request {
  std::array<char, 64> interface {};  ///< kCompilerInterface
  std::uint64_t id = 0;
  std::array<std::uint64_t, 2> key{};  ///< of the cache
  std::uint32_t block[3] = {};
  std::uint8_t small_grid = 0, clusters = 0, fetch_ahead = 0, few_lanes = 0, guard_zones = 0, memcheck = 0, record = 0;
  std::array<char, 24> cpu{};
  std::uint8_t zero = 0;
  std::uint32_t name_bytes = 0;  ///< the kernel's name follows
};
/// All that code depends on goes along: a service that lacks an option would make other code for the same key.
void SetOptions(const CompileOptions& options, Request& request);
CompileOptions OptionsOf(const Request& request);

struct Reply {
  std::uint64_t id = 0;
  std::uint32_t ok = 0;  ///< 1: the object comes in a file; 0: the error follows
  std::uint32_t error_bytes = 0;
};

/// What has been read of a module: text, and what text does not tell: the lines that instructions have in the text they
/// came from, the targets of linked functions, and the order in which functions and variables are numbered, by which
/// code refers to them.
std::string PackModule(const ptx::Module& module);
Result<std::unique_ptr<ptx::Module>> UnpackModule(std::string_view packed);

/// A file in memory, or -1.
int MakeFile(std::string_view contents);
Result<std::string> ReadFile(int fd);

/// One message, with a file where `fd` is not -1. False when the other end is gone or does not listen.
bool Send(int socket, std::string_view message, int fd);
/// The same of a message that comes; `fd` is -1 where none came with it. Empty: the other end is gone.
std::string Receive(int socket, int& fd);

}  // namespace gridloom::exec::background
