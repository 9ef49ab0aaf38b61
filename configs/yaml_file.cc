#include "configs/yaml_file.h"

#include <yaml-cpp/yaml.h>

#include <utility>

#include "configs/message_text.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr int kMaxDepth = 8;
constexpr size_t kMaxMessage = 120;

using Flat = std::map<std::string, YamlValue>;

Status ErrorAt(const std::string& name, const YAML::Mark& mark, const std::string& what) {
  std::string place = mark.is_null() ? "" : Format("{}:{}: ", mark.line + 1, mark.column + 1);
  return InvalidArgument(name + ":" + place + what);
}

enum class YamlLists { kRefused, kNumbered };

// One text, into dotted keys.
class Flattening {
 public:
  Flattening(const std::string& name, YamlLists lists) : name_(name), lists_(lists) {}

  Status Add(const YAML::Node& map, const std::string& prefix, int depth) {
    if (depth > kMaxDepth) return TooDeep(map);
    for (const auto& entry : map) {
      const YAML::Node& key = entry.first;
      if (!key.IsScalar()) return ErrorAt(name_, key.Mark(), "a key must be a plain word");
      const std::string path = prefix.empty() ? key.Scalar() : prefix + "." + key.Scalar();
      if (Status added = AddValue(entry.second, path, key.Mark(), depth); !added.ok()) return added;
    }
    return Status::Ok();
  }
  Flat Release() { return std::move(flat_); }

 private:
  Status AddValue(const YAML::Node& value, const std::string& path, const YAML::Mark& at,
                  int depth) {
    if (value.IsNull()) return Status::Ok();
    if (value.IsMap()) return Add(value, path, depth + 1);
    if (value.IsSequence() && lists_ == YamlLists::kNumbered)
      return AddList(value, path, depth + 1);
    if (!value.IsScalar())
      return ErrorAt(name_, value.Mark(), Printable(path) + " must be a single value, not a list");
    const bool is_new = flat_.emplace(path, YamlValue{value.Scalar(), at.line + 1}).second;
    return is_new ? Status::Ok() : ErrorAt(name_, at, Printable(path) + " appears twice, keep one");
  }
  Status AddList(const YAML::Node& list, const std::string& path, int depth) {
    if (depth > kMaxDepth) return TooDeep(list);
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string item = Format("{}.{}", path, i);
      if (Status added = AddValue(list[i], item, list[i].Mark(), depth); !added.ok()) return added;
    }
    return Status::Ok();
  }
  Status TooDeep(const YAML::Node& node) const {
    return ErrorAt(name_, node.Mark(), "sections are nested too deeply");
  }

  const std::string& name_;
  const YamlLists lists_;
  Flat flat_;
};

Result<Flat> Parse(std::string_view text, const std::string& name, YamlLists lists) {
  try {
    YAML::Node root = YAML::Load(std::string(text));
    if (root.IsNull()) return Flat();
    if (!root.IsMap()) return ErrorAt(name, root.Mark(), "expected sections such as 'logging:'");
    Flattening flattening(name, lists);
    HVD_RETURN_IF_ERROR(flattening.Add(root, "", 0));
    return flattening.Release();
  } catch (const YAML::Exception& error) {
    return ErrorAt(name, error.mark, Printable(error.msg, kMaxMessage));  // it may quote the file
  }
}

}  // namespace

Result<Flat> ParseYaml(std::string_view text, const std::string& name) {
  return Parse(text, name, YamlLists::kRefused);
}

Result<Flat> ParseYamlWithLists(std::string_view text, const std::string& name) {
  return Parse(text, name, YamlLists::kNumbered);
}

Result<std::string> WithValues(std::string_view text, const std::string& name,
                               const std::map<std::string, std::string>& values) {
  if (Result<Flat> flat = ParseYaml(text, name); !flat.ok()) return flat.status();
  YAML::Node root = YAML::Load(std::string(text));
  if (root.IsNull()) root = YAML::Node(YAML::NodeType::Map);
  for (const auto& [key, value] : values) {
    YAML::Node section = root;
    std::string_view rest = key;
    for (size_t dot = rest.find('.'); dot != rest.npos; dot = rest.find('.')) {
      section.reset(section[std::string(rest.substr(0, dot))]);
      rest.remove_prefix(dot + 1);
    }
    section[std::string(rest)] = value;
  }
  YAML::Emitter emitter;
  emitter << root;
  return std::string(emitter.c_str()) + "\n";
}

}  // namespace hvd
