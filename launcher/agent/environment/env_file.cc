#include "launcher/agent/environment/env_file.h"

#include <algorithm>

#include "discovery/words.h"
#include "runtime/base/read_file.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/printable_text.h"

namespace hvd {
namespace {

bool IsName(std::string_view name) {
  return !name.empty() && name.find_first_of(" \t\r\n=") == std::string_view::npos;
}

class EnvFileParser {
 public:
  EnvFileParser(std::string_view text, const std::string& file_name)
      : rest_(text), file_name_(file_name) {}

  Result<std::vector<GivenVariable>> Parse() {
    std::vector<GivenVariable> variables;
    if (rest_.find('\0') != std::string_view::npos)
      return InvalidArgument("--env-file " + file_name_ + ": it is not a text file");
    while (!rest_.empty()) {
      ++line_;
      size_t end = std::min(rest_.find('\n'), rest_.size());
      std::string_view line = Trimmed(rest_.substr(0, end));
      if (line.empty() || line.front() == '#') {
        Skip(end);
        continue;
      }
      Result<GivenVariable> variable = ParseVariable(line);
      if (!variable.ok()) return variable.status();
      variables.push_back(std::move(*variable));
    }
    return variables;
  }

 private:
  // `line` begins where rest_ does, after blanks.
  Result<GivenVariable> ParseVariable(std::string_view line) {
    size_t equals = line.find('=');
    std::string_view name = Trimmed(line.substr(0, equals));
    if (name.starts_with("export ")) name = Trimmed(name.substr(7));
    if (equals == std::string_view::npos)
      return Wrong(Quoted(line) + " has no '='; write NAME=value");
    if (!IsName(name)) return Wrong(Quoted(name) + " is no name of a variable");
    GivenVariable variable{std::string(name), "", Format("{}:{}", file_name_, line_)};
    rest_.remove_prefix(rest_.find('=') + 1);
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
    if (!rest_.empty() && (rest_.front() == '"' || rest_.front() == '\'')) {
      HVD_RETURN_IF_ERROR(ParseQuoted(variable.value));
      return variable;
    }
    size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view value = rest_.substr(0, end);
    if (value.starts_with('#')) value = {};
    for (const char* comment : {" #", "\t#"}) value = value.substr(0, value.find(comment));
    variable.value = Trimmed(value);
    Skip(end);
    return variable;
  }

  Status ParseQuoted(std::string& value) {
    int first_line = line_;
    char quote = rest_.front();
    size_t at = 1;
    for (; at < rest_.size() && rest_[at] != quote; ++at) {
      char c = rest_[at];
      if (c == '\n') ++line_;
      if (quote == '"' && c == '\\' && at + 1 < rest_.size()) {
        c = rest_[++at];
        if (c == 'n')
          c = '\n';
        else if (c == 't')
          c = '\t';
        else if (c == 'r')
          c = '\r';
        else if (c != '"' && c != '\\' && c != '$')
          value += '\\';
      }
      value += c;
    }
    if (at >= rest_.size()) {
      line_ = first_line;
      return Wrong(std::string("the quote ") + quote + " is not closed");
    }
    rest_.remove_prefix(at + 1);
    size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view after = Trimmed(rest_.substr(0, end));
    if (!after.empty() && after.front() != '#')
      return Wrong(Quoted(after) + " after the closing quote");
    Skip(end);
    return Status::Ok();
  }

  void Skip(size_t end) { rest_.remove_prefix(std::min(end + 1, rest_.size())); }

  Status Wrong(const std::string& what) const {
    return InvalidArgument(Format("--env-file {}:{}: {}", file_name_, line_, what));
  }

  std::string_view rest_;
  const std::string& file_name_;
  int line_ = 0;
};

}  // namespace

Result<std::vector<GivenVariable>> ParseEnvFile(std::string_view text,
                                                const std::string& file_name) {
  return EnvFileParser(text, file_name).Parse();
}

Result<std::vector<GivenVariable>> ReadEnvFile(const std::string& path) {
  Result<std::string> text = ReadFileWithin(path, {});
  if (!text.ok()) return InvalidArgument("--env-file " + path + ": it " + text.status().message());
  return ParseEnvFile(*text, path);
}

Result<std::vector<GivenVariable>> ParsePassed(
    const std::vector<std::string>& passed,
    const std::function<std::optional<std::string>(const char*)>& lookup) {
  std::vector<GivenVariable> variables;
  for (const std::string& item : passed) {
    size_t equals = item.find('=');
    std::string name = item.substr(0, equals);
    if (!IsName(name))
      return InvalidArgument("-x " + Quoted(item) +
                             ": this is no name of a variable; write -x NAME or -x NAME=value");
    if (equals != std::string::npos) {
      variables.push_back({name, item.substr(equals + 1), "-x"});
      continue;
    }
    std::optional<std::string> value = lookup(name.c_str());
    if (!value)
      return InvalidArgument(
          "-x " + name + ": this variable is not set here; set it, or write -x " + name + "=value");
    variables.push_back({name, std::move(*value), "-x"});
  }
  return variables;
}

}  // namespace hvd
