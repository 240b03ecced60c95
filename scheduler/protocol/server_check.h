// Before a program says its name and its secret on a socket it looks at who listens there: on a path that others could
// have put a socket at, that may be anybody who was faster.
//
// Root and the program's own user are trusted: they can read its secret anyway. Another user S may serve a broker where
// its being S is what somebody trusted wanted: the socket is S's, and all that leads to it, from the root folder on,
// belongs to root, the program's user or S, and can be changed by nobody else. So a path says whose broker it is:
// /run/gridloom/broker.sock is that of the user to whom root gave /run/gridloom. A folder in which anybody may make
// files, such as /tmp, says nothing.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/protocol/socket.h"

namespace gridloom::protocol {

/// A folder, a link or the socket itself.
struct PathStep {
  std::string path;
  uid_t uid = 0;
  mode_t mode = 0;  ///< type and permissions
};

/// All that leads to a socket.
struct SocketPath {
  std::vector<PathStep> steps;  ///< every folder and link that is passed, from the root folder on
  PathStep folder;              ///< that it lies in
  PathStep socket;
};

Result<SocketPath> WalkTo(const std::string& path);

/// An error that says why nothing is said to this server, and what to do about it. `self`: the user who wants to.
Status CheckServer(const SocketPath& path, const Peer& server, uid_t self);

}  // namespace gridloom::protocol
