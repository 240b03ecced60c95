#include "sim/exec/runtime/background/messages.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "rewriter/ptx/lazy_bodies.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/visit.h"
#include "rewriter/support/diagnostic.h"
#include "sim/exec/contract/layout.h"

namespace gridloom::exec::background {
namespace {

/// What text does not tell: the line of each instruction, and of each function its line and the target it was linked
/// from. In the order in which functions are written, which is not that of Module::functions where parts were linked.
template <typename Visit>
void VisitNotes(ptx::Module& module, Visit visit) {
  for (const ptx::ModuleItem& item : module.items) {
    const auto* const function = std::get_if<ptx::Function*>(&item);
    if (!function || !(*function)->body) continue;
    visit((*function)->loc.line);
    visit((*function)->target_sm);
    ptx::VisitStatements(*(*function)->body, [&](ptx::Statement& statement) {
      if (auto* instruction = std::get_if<ptx::Instruction>(&statement)) visit(instruction->loc.line);
    });
  }
}

/// Names in the order of their numbers.
std::string NumberedNames(const ptx::Module& module) {
  const SymbolTable table = NumberSymbols(module);
  std::string names;
  for (const ptx::Function* function : table.functions) names.append(function->name).push_back('\n');
  for (const ptx::Variable* variable : table.variables) names.append(variable->name).push_back('\n');
  return names;
}

/// Numbers functions and variables in the order of `names`, which are NumberedNames of the module that was packed.
void NumberAs(ptx::Module& module, std::string_view names) {
  std::unordered_map<std::string_view, std::uint32_t> orders;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find('\n'));
    orders.emplace(name, static_cast<std::uint32_t>(orders.size()));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
  }
  const auto number = [&](auto& symbols) {
    for (auto& symbol : symbols) {
      const auto found = orders.find(symbol.name);
      if (found != orders.end()) symbol.order = found->second;
    }
  };
  number(module.functions);
  number(module.variables);
}

}  // namespace

void SetOptions(const CompileOptions& options, Request& request) {
  // Whoever adds an option comes by here.
  const auto& [block, small_grid, clusters, memcheck, record, fetch_ahead, few_lanes, guard_zones, cpu, keep_ir] =
      options;
  std::copy(std::begin(block), std::end(block), request.block);
  request.small_grid = small_grid;
  request.clusters = clusters;
  request.memcheck = memcheck;
  request.record = static_cast<std::uint8_t>(record);
  request.fetch_ahead = fetch_ahead;
  request.few_lanes = few_lanes;
  request.guard_zones = guard_zones;
  std::strncpy(request.cpu.data(), cpu.c_str(), request.cpu.size() - 1);
  static_cast<void>(keep_ir);  // changes no code, and nobody would read it
}

CompileOptions OptionsOf(const Request& request) {
  CompileOptions options;
  std::copy(std::begin(request.block), std::end(request.block), options.block);
  options.small_grid = request.small_grid != 0;
  options.clusters = request.clusters != 0;
  options.memcheck = request.memcheck != 0;
  options.record = static_cast<Recording>(request.record);
  options.fetch_ahead = request.fetch_ahead != 0;
  options.few_lanes = request.few_lanes;
  options.guard_zones = request.guard_zones != 0;
  options.cpu = std::string(request.cpu.data(), strnlen(request.cpu.data(), request.cpu.size()));
  return options;
}

std::string PackModule(const ptx::Module& module) {
  std::vector<std::uint32_t> notes;
  std::string text, names;
  const auto look = [&] {
    VisitNotes(const_cast<ptx::Module&>(module), [&](std::uint32_t& note) { notes.push_back(note); });
    text = ptx::PrintModuleAsRead(module);
    names = NumberedNames(module);
  };
  if (module.unread != nullptr) module.unread->WhileNothingIsRead(look);
  else look();
  const std::uint64_t counts[3] = {text.size(), notes.size(), names.size()};
  std::string packed(reinterpret_cast<const char*>(counts), sizeof counts);
  packed += text + names;
  packed.append(reinterpret_cast<const char*>(notes.data()), notes.size() * sizeof(std::uint32_t));
  return packed;
}

Result<std::unique_ptr<ptx::Module>> UnpackModule(std::string_view packed) {
  std::uint64_t counts[3];
  if (packed.size() < sizeof counts) return Error{"a module without a beginning"};
  std::memcpy(counts, packed.data(), sizeof counts);
  packed.remove_prefix(sizeof counts);
  if (counts[0] > packed.size() || counts[1] > packed.size() / 4 || counts[2] > packed.size() - counts[0] ||
      packed.size() - counts[0] - counts[2] != counts[1] * 4)
    return Error{"a module of another size than it says"};
  DiagnosticSink sink;
  std::unique_ptr<ptx::Module> module = ptx::ParseModule(packed.substr(0, counts[0]), sink);
  if (sink.has_errors())
    return Error{"a printed module does not read back: " +
                 FormatDiagnostics(sink, "module", packed.substr(0, counts[0])).substr(0, 400)};
  packed.remove_prefix(counts[0]);
  NumberAs(*module, packed.substr(0, counts[2]));
  if (NumberedNames(*module) != packed.substr(0, counts[2]))
    return Error{"a printed module numbers its symbols in another way"};
  packed.remove_prefix(counts[2]);
  std::size_t read = 0;
  VisitNotes(*module, [&](std::uint32_t& note) {
    if (read < counts[1]) std::memcpy(&note, packed.data() + read * 4, 4);
    ++read;
  });
  if (read != counts[1])
    return Error{"a printed module reads back with " + std::to_string(read) + " notes in place of " +
                 std::to_string(counts[1])};
  return module;
}

int MakeFile(std::string_view contents) {
  const int fd = memfd_create("gridloom", MFD_CLOEXEC);
  if (fd < 0) return -1;
  for (std::size_t at = 0; at < contents.size();) {
    const ssize_t put = write(fd, contents.data() + at, contents.size() - at);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      close(fd);
      return -1;
    }
    at += static_cast<std::size_t>(put);
  }
  return fd;
}

Result<std::string> ReadFile(int fd) {
  struct stat status {};
  if (fd < 0 || fstat(fd, &status) != 0 || status.st_size < 0 ||
      static_cast<std::uint64_t>(status.st_size) > kMaxFileBytes)
    return Error{"no file, or one too large"};
  std::string contents(static_cast<std::size_t>(status.st_size), '\0');
  for (std::size_t at = 0; at < contents.size();) {
    const ssize_t got = pread(fd, contents.data() + at, contents.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Error{"a file that ends early"};
    at += static_cast<std::size_t>(got);
  }
  return contents;
}

bool Send(int socket, std::string_view message, int fd) {
  iovec part{const_cast<char*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  for (;;) {
    if (sendmsg(socket, &header, MSG_NOSIGNAL) >= 0) return true;
    if (errno != EINTR) return false;
  }
}

std::string Receive(int socket, int& fd) {
  fd = -1;
  std::string message(kMaxName + 1024, '\0');
  iovec part{message.data(), message.size()};
  msghdr header{};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got = 0;
  do got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got <= 0) return {};
  if (const cmsghdr* const rights = CMSG_FIRSTHDR(&header); rights && rights->cmsg_level == SOL_SOCKET &&
                                                            rights->cmsg_type == SCM_RIGHTS &&
                                                            rights->cmsg_len == CMSG_LEN(sizeof(int)))
    std::memcpy(&fd, CMSG_DATA(rights), sizeof fd);
  message.resize(static_cast<std::size_t>(got));
  return message;
}

}  // namespace gridloom::exec::background
