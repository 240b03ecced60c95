// Who has how many of the broker's places. No user takes those of all others: connections that have not said who they
// are yet get a quarter of the places per user, and sessions of users other than the broker's own have a limit of their
// own.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace gridloom::broker {

class Places {
 public:
  /// `per_user`: 0: a quarter. `own`: the broker's user; it and root, who operate it, have a few places more.
  Places(std::uint32_t most, std::uint32_t per_user, uid_t own);

  /// Why a further connection of the user is refused; null: it is not.
  const char* RefuseConnection(uid_t user) const;
  /// Why a connection that says it is a tenant is refused; null: it is not.
  const char* RefuseSession() const;

  void Connect(uid_t user);
  void Admit(uid_t user);
  void Leave(uid_t user, bool admitted);

  std::size_t silent() const { return silent_; }
  /// Places get few: who says nothing has to go sooner.
  bool scarce() const { return (silent_ + admitted_) * 2 > most_ || silent_ * 4 >= most_; }

 private:
  struct User {
    std::size_t silent = 0, admitted = 0;
  };
  bool operates(uid_t user) const { return user == own_ || user == 0; }

  const std::size_t most_, per_user_;
  const uid_t own_;
  std::size_t silent_ = 0, admitted_ = 0;
  std::unordered_map<uid_t, User> users_;  ///< those that have places
};

}  // namespace gridloom::broker
