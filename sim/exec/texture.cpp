#include "sim/exec/texture.h"

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

namespace gridloom::exec {
namespace {

struct Slot {
  bool is_texture = false;
  TextureObject texture;
  SurfaceObject surface;
};

}  // namespace

// Two levels of fixed arrays, so that readers need no lock while the table grows. A removed object stays as it is while
// further ones are removed after it, since a running kernel may be about to read it; then another object is put in its
// place.
struct ImageTable::Slots {
  static constexpr std::size_t kChunk = 1024, kChunks = 1024, kKept = 1024;
  using Chunk = std::array<std::atomic<Slot*>, kChunk>;
  std::array<std::atomic<Chunk*>, kChunks> chunks{};
  std::mutex mutex;
  std::uint64_t next = 1;
  std::vector<std::uint64_t> free;
  std::deque<Slot*> removed;

  Slot* Find(std::uint64_t handle) const {
    if (handle == 0 || handle >= kChunk * kChunks) return nullptr;
    const Chunk* const chunk = chunks[handle / kChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : (*chunk)[handle % kChunk].load(std::memory_order_acquire);
  }
  std::uint64_t Add(const Slot& object) {
    const std::lock_guard lock(mutex);
    std::uint64_t handle = next;
    if (!free.empty()) {
      handle = free.back();
      free.pop_back();
    } else if (next >= kChunk * kChunks) {
      return 0;
    } else {
      ++next;
    }
    Slot* slot = nullptr;
    if (removed.size() > kKept) {
      slot = removed.front();
      removed.pop_front();
      *slot = object;
    } else {
      slot = new Slot(object);
    }
    auto& place = chunks[handle / kChunk];
    if (place.load(std::memory_order_relaxed) == nullptr) place.store(new Chunk{}, std::memory_order_release);
    (*place.load(std::memory_order_relaxed))[handle % kChunk].store(slot, std::memory_order_release);
    return handle;
  }
  bool Remove(std::uint64_t handle, bool texture) {
    const std::lock_guard lock(mutex);
    Slot* const slot = Find(handle);
    if (slot == nullptr || slot->is_texture != texture) return false;
    (*chunks[handle / kChunk].load(std::memory_order_relaxed))[handle % kChunk].store(nullptr,
                                                                                      std::memory_order_release);
    free.push_back(handle);
    removed.push_back(slot);
    return true;
  }
};

ImageTable& ImageTable::Get() {
  static ImageTable* const table = new ImageTable;
  return *table;
}

ImageTable::ImageTable() : slots_(new Slots) {}

std::uint64_t ImageTable::Add(const TextureObject& texture) { return slots_->Add(Slot{true, texture, {}}); }
std::uint64_t ImageTable::Add(const SurfaceObject& surface) { return slots_->Add(Slot{false, {}, surface}); }
bool ImageTable::RemoveTexture(std::uint64_t handle) { return slots_->Remove(handle, true); }
bool ImageTable::RemoveSurface(std::uint64_t handle) { return slots_->Remove(handle, false); }

const TextureObject* ImageTable::FindTexture(std::uint64_t handle) const {
  const Slot* const slot = slots_->Find(handle);
  return slot != nullptr && slot->is_texture ? &slot->texture : nullptr;
}

const SurfaceObject* ImageTable::FindSurface(std::uint64_t handle) const {
  const Slot* const slot = slots_->Find(handle);
  return slot != nullptr && !slot->is_texture ? &slot->surface : nullptr;
}

}  // namespace gridloom::exec
