#include "sim/device/yaml_map.h"

#include <yaml.h>

#include <optional>
#include <unordered_set>

#include "rewriter/support/suggest.h"

namespace gridloom::sim {
namespace {

Error At(std::string_view file, std::size_t line, const std::string& message) {
  return Error{std::string(file) + ":" + std::to_string(line + 1) + ": " + message};
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view file, bool lists) : file_(file), lists_(lists) {
    initialised_ = yaml_parser_initialize(&parser_) != 0;
    if (!initialised_) return;
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~Reader() {
    if (initialised_) yaml_parser_delete(&parser_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  Result<std::vector<YamlEntry>> Read() {
    if (!initialised_) return Error{std::string(file_) + ": out of memory"};
    bool more = true;
    while (more) {
      yaml_event_t event;
      if (yaml_parser_parse(&parser_, &event) == 0) return SyntaxError();
      const Status status = Take(event);
      more = event.type != YAML_DOCUMENT_END_EVENT && event.type != YAML_STREAM_END_EVENT;
      yaml_event_delete(&event);
      GL_TRY_STATUS(status);
    }
    return std::move(entries_);
  }

 private:
  Error SyntaxError() const {
    const std::string problem = parser_.problem != nullptr ? parser_.problem : "not valid YAML";
    return At(file_, parser_.problem_mark.line, problem);
  }

  Status Take(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_SCALAR_EVENT: return TakeScalar(event);
      case YAML_MAPPING_START_EVENT: return OpenMap(event);
      case YAML_MAPPING_END_EVENT:
        path_.resize(parents_.back());
        parents_.pop_back();
        return {};
      case YAML_SEQUENCE_START_EVENT:
        if (!lists_ || !key_ || in_list_) return At(file_, event.start_mark.line, "a list is not expected here");
        GL_TRY_STATUS(CheckNew(path_ + *key_, event.start_mark.line));
        in_list_ = true;
        return {};
      case YAML_SEQUENCE_END_EVENT:
        in_list_ = false;
        key_.reset();
        return {};
      case YAML_ALIAS_EVENT: return At(file_, event.start_mark.line, "anchors and aliases are not supported");
      default: return {};
    }
  }

  Status OpenMap(const yaml_event_t& event) {
    if (in_list_) return At(file_, event.start_mark.line, "a map is not expected in a list");
    if (!parents_.empty() && !key_) return At(file_, event.start_mark.line, "a map cannot be a key");
    parents_.push_back(path_.size());
    if (key_) path_ += *key_ + ".";
    key_.reset();
    return {};
  }

  Status TakeScalar(const yaml_event_t& event) {
    const std::size_t line = event.start_mark.line;
    std::string text(reinterpret_cast<const char*>(event.data.scalar.value), event.data.scalar.length);
    if (parents_.empty()) return At(file_, line, "expected 'key: value' lines");
    if (!key_) {
      key_ = std::move(text);
      return {};
    }
    std::string key = path_ + *key_;
    if (!in_list_) {
      key_.reset();
      GL_TRY_STATUS(CheckNew(key, line));
    }
    entries_.push_back({std::move(key), std::move(text), static_cast<std::uint32_t>(line + 1), in_list_});
    return {};
  }

  Status CheckNew(const std::string& key, std::size_t line) {
    if (!keys_.insert(key).second) return At(file_, line, "key '" + key + "' is given twice");
    return {};
  }

  std::string_view file_;
  const bool lists_;
  bool in_list_ = false;  // of key_
  yaml_parser_t parser_{};
  bool initialised_ = false;
  std::string path_;                  // "sm." while inside `sm:`
  std::vector<std::size_t> parents_;  // length of path_ outside each open map
  std::optional<std::string> key_;    // waiting for its value
  std::vector<YamlEntry> entries_;
  std::unordered_set<std::string> keys_;  // of entries_, and of empty lists
};

}  // namespace

Result<std::vector<YamlEntry>> ReadYamlMap(std::string_view text, std::string_view file) {
  return Reader(text, file, false).Read();
}

Result<std::vector<YamlEntry>> ReadYamlLists(std::string_view text, std::string_view file) {
  return Reader(text, file, true).Read();
}

std::string PlaceOf(const YamlEntry& entry, std::string_view file) {
  return std::string(file) + (entry.line == 0 ? "" : ":" + std::to_string(entry.line));
}

Error UnknownYamlKey(const YamlEntry& entry, std::string_view file, std::span<const std::string_view> known,
                     std::string_view otherwise) {
  const std::string_view nearest = NearestName(entry.key, known);
  const std::string hint = nearest.empty() ? std::string(otherwise) : "did you mean '" + std::string(nearest) + "'?";
  return Error{PlaceOf(entry, file) + ": unknown key '" + entry.key + "'; " + hint};
}

}  // namespace gridloom::sim
