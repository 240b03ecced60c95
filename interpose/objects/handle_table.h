// Maps the handles a program holds to objects. A handle is the object's address, so it is never dereferenced before it
// was found here: a stale or foreign handle is an error code, not a crash. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace gridloom::session {

template <typename T, typename Handle>
class HandleTable {
 public:
  Handle Add(std::shared_ptr<T> object) {
    const auto handle = reinterpret_cast<Handle>(object.get());
    const std::unique_lock lock(mutex_);
    objects_[handle] = std::move(object);
    return handle;
  }
  std::shared_ptr<T> Find(Handle handle) const {
    const std::shared_lock lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  std::shared_ptr<T> Remove(Handle handle) {
    const std::unique_lock lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    auto object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  /// Takes out every object for which `predicate(T&)` holds.
  template <typename Predicate>
  std::vector<std::shared_ptr<T>> RemoveIf(Predicate predicate) {
    std::vector<std::shared_ptr<T>> removed;
    const std::unique_lock lock(mutex_);
    for (auto it = objects_.begin(); it != objects_.end();) {
      if (predicate(*it->second)) {
        removed.push_back(std::move(it->second));
        it = objects_.erase(it);
      } else {
        ++it;
      }
    }
    return removed;
  }
  template <typename Function>
  void ForEach(Function function) const {
    const std::shared_lock lock(mutex_);
    for (const auto& [handle, object] : objects_) function(object);
  }
  std::size_t size() const {
    const std::shared_lock lock(mutex_);
    return objects_.size();
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<Handle, std::shared_ptr<T>> objects_;
};

}  // namespace gridloom::session
