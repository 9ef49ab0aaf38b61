#include "configs/yaml_file.h"

#include <yaml-cpp/yaml.h>

#include "configs/message_text.h"

namespace hvd {
namespace {

constexpr int kMaxDepth = 8;
constexpr size_t kMaxMessage = 120;

using Flat = std::map<std::string, YamlValue>;

Status ErrorAt(const std::string& name, const YAML::Mark& mark, const std::string& what) {
  std::string place =
      mark.is_null() ? ""
                     : std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1) + ": ";
  return InvalidArgument(name + ":" + place + what);
}

Status Flatten(const YAML::Node& node, const std::string& prefix, int depth,
               const std::string& name, Flat& flat);

Status AddEntry(const YAML::Node& key, const YAML::Node& value, const std::string& prefix,
                int depth, const std::string& name, Flat& flat) {
  if (!key.IsScalar()) return ErrorAt(name, key.Mark(), "a key must be a plain word");
  std::string path = prefix.empty() ? key.Scalar() : prefix + "." + key.Scalar();
  if (value.IsNull()) return Status::Ok();
  if (value.IsMap()) return Flatten(value, path, depth + 1, name, flat);
  if (!value.IsScalar()) {
    return ErrorAt(name, value.Mark(), Printable(path) + " must be a single value, not a list");
  }
  bool is_new = flat.emplace(path, YamlValue{value.Scalar(), key.Mark().line + 1}).second;
  if (!is_new) return ErrorAt(name, key.Mark(), Printable(path) + " appears twice, keep one");
  return Status::Ok();
}

Status Flatten(const YAML::Node& node, const std::string& prefix, int depth,
               const std::string& name, Flat& flat) {
  if (depth > kMaxDepth) return ErrorAt(name, node.Mark(), "sections are nested too deeply");
  for (const auto& entry : node) {
    Status added = AddEntry(entry.first, entry.second, prefix, depth, name, flat);
    if (!added.ok()) return added;
  }
  return Status::Ok();
}

}  // namespace

Result<Flat> ParseYaml(std::string_view text, const std::string& name) {
  try {
    YAML::Node root = YAML::Load(std::string(text));
    Flat flat;
    if (root.IsNull()) return flat;
    if (!root.IsMap()) return ErrorAt(name, root.Mark(), "expected sections such as 'logging:'");
    Status status = Flatten(root, "", 0, name, flat);
    if (!status.ok()) return status;
    return flat;
  } catch (const YAML::Exception& error) {
    return ErrorAt(name, error.mark, Printable(error.msg, kMaxMessage));  // it may quote the file
  }
}

}  // namespace hvd
