#include "scheduler/daemon/places.h"

#include <algorithm>

namespace gridloom::broker {
namespace {

/// Places for operators, when all others are taken.
constexpr std::size_t kOperatorPlaces = 8;

}  // namespace

Places::Places(std::uint32_t most, std::uint32_t per_user, uid_t own)
    : most_(most), per_user_(per_user != 0 ? per_user : std::max<std::uint32_t>(most / 4, 1)), own_(own) {}

const char* Places::RefuseConnection(uid_t user) const {
  if (silent_ + admitted_ >= most_ + (operates(user) ? kOperatorPlaces : 0)) return "there are too many sessions";
  const auto at = users_.find(user);
  if (at == users_.end()) return nullptr;
  if (!operates(user) && at->second.silent + at->second.admitted >= per_user_) return "its user has too many sessions";
  if (silent_ * 4 >= most_ && at->second.silent * 4 >= most_) return "too many connections have not said who they are";
  return nullptr;
}

const char* Places::RefuseSession() const { return admitted_ >= most_ ? "there are too many sessions" : nullptr; }

void Places::Connect(uid_t user) {
  ++users_[user].silent;
  ++silent_;
}

void Places::Admit(uid_t user) {
  User& places = users_[user];
  --places.silent;
  --silent_;
  ++places.admitted;
  ++admitted_;
}

void Places::Leave(uid_t user, bool admitted) {
  User& places = users_[user];
  --(admitted ? places.admitted : places.silent);
  --(admitted ? admitted_ : silent_);
  if (places.silent == 0 && places.admitted == 0) users_.erase(user);
}

}  // namespace gridloom::broker
