// A configuration file as flat dotted keys. The only file that includes yaml-cpp is its .cc.
#ifndef HVD_CONFIGS_YAML_FILE_H_
#define HVD_CONFIGS_YAML_FILE_H_

#include <map>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace hvd {

struct YamlValue {
  std::string text;
  int line = 0;  // from 1
};

// "params.cycle_time_ms" -> its text. Keys with an empty value are left out. `name` is the file's
// name for messages. Anything but nested maps of plain values is kInvalidArgument with file, line
// and column.
Result<std::map<std::string, YamlValue>> ParseYaml(std::string_view text, const std::string& name);

// The same of what a program prints: a list "nodes" is "nodes.0", "nodes.1", ...
Result<std::map<std::string, YamlValue>> ParseYamlWithLists(std::string_view text,
                                                            const std::string& name);

// `text` with the values of some dotted keys, in their sections; new text where `text` is empty.
// Comments are not kept. An error as of ParseYaml.
Result<std::string> WithValues(std::string_view text, const std::string& name,
                               const std::map<std::string, std::string>& values);

}  // namespace hvd

#endif  // HVD_CONFIGS_YAML_FILE_H_
