// Bad input of every kind: one printable, short sentence that names what was said, and nothing
// else.
#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <vector>

#include "configs/command_line.h"

namespace hvd {
namespace {

struct Input {
  std::vector<std::string> args;
  std::string named;      // has to be in the sentence
  std::string yaml = "";  // of the file job.yaml
  std::string env = "";   // "NAME=value"
};

Result<ParsedCommandLine> Parse(const Input& c) {
  auto lookup = [&](const char* name) -> std::optional<std::string> {
    std::string start = std::string(name) + "=";
    return c.env.starts_with(start) ? std::optional(c.env.substr(start.size())) : std::nullopt;
  };
  auto read = [&](const std::string&) -> Result<std::string> { return c.yaml; };
  return ParseCommandLine(c.args, lookup, read);
}

const std::string kLong(10'000, 'x');
const std::string kDigits(10'000, '9');
const std::string kControl = "a\x1b[31m\r\n\x07\x7f";

std::vector<Input> BadInput() {
  auto file = [](const std::string& yaml, const std::string& named) {
    return Input{{"-np", "1", "--config-file", "job.yaml", "a"}, named, yaml};
  };
  return {
      {{}, "-np"},
      {{"-np"}, "-np"},
      {{"-np", "2"}, "command"},
      {{"-np", "", "a"}, "-np"},
      {{"-np", "0", "a"}, "0"},
      {{"-np", "-3", "a"}, "-3"},
      {{"-np", "1.5", "a"}, "1.5"},
      {{"-np", "2x", "a"}, "2x"},
      {{"-np", " 2", "a"}, "2"},
      {{"-np", "0x10", "a"}, "0x10"},
      {{"-np", "99999999999999999999", "a"}, "99999999999999999999"},
      {{"-np", kDigits, "a"}, "10000 characters"},
      {{"-np", kLong, "a"}, "10000 characters"},
      {{"-np", kControl, "a"}, "\\x1b"},
      {{"-np", "1", "--" + kLong, "a"}, "unknown option"},
      {{"-np", "1", "--" + kControl, "a"}, "unknown option"},
      {{"-np", "1", "--timeout", "nan", "a"}, "nan"},
      {{"-np", "1", "--timeout", "inf", "a"}, "inf"},
      {{"-np", "1", "--timeout", "-1", "a"}, "-1"},
      {{"-np", "1", "--timeout", "1e999", "a"}, "1e999"},
      {{"-np", "1", "--color", "blue", "a"}, "blue"},
      {{"-np", "1", "--color", "", "a"}, "--color"},
      {{"-np", "1", "--hosts-per-machine", "65", "a"}, "65"},
      {{"-np", "1", "--slots", "0", "a"}, "--slots 0"},
      {{"-np", "1", "-H", "", "a"}, "-H"},
      {{"-np", "1", "-H", "a:1", "--hostfile", "b", "a"}, "-H and --hostfile"},
      {{"-np", "1", "--hostfile=b", "-H=a:1", "a"}, "--hostfile and -H"},
      {{"-np", "1", "--verbose", "--no-verb", "a"}, "--verbose and --no-verb"},
      {{"-np", "1", "--min-np", "0", "a"}, "--min-np 0"},
      {{"-np", "1", "--blacklist-cooldown-range", "a"}, "--blacklist-cooldown-range"},
      {{"-np", "1", "--blacklist-cooldown-range", "5", "2", "a"}, "'5 2'"},
      {{"-np", "1", "--blacklist-cooldown-range=5", "2", "a"}, "--blacklist-cooldown-range 5 is"},
      {{"-np", "1", "--blacklist-cooldown-range", "5", kLong, "a"}, "characters"},
      {{"-np", "1", "-H", "a:1", "--host-discovery-script", "b", "a"}, "exclude each other"},
      {{"-np", "1", "--fold=yes", "a"}, "--fold"},
      {{"-np", "1", "--ver", "a"}, "--verbose, --version"},
      {{"-np", "1", "a"}, "HOROVOD_START_TIMEOUT=soon", "", "HOROVOD_START_TIMEOUT=soon"},
      {{"-np", "1", "a"}, "-5", "", "HOROVOD_STALL_CHECK_TIME_SECONDS=-5"},
      {{"-np", "1", "a"}, "characters", "", "HOROVOD_LOG_LEVEL=" + kLong},
      file("a: [", "job.yaml:"),
      file("a: b: c\n", "job.yaml:1:"),
      file("\tlogging: 1\n", "job.yaml:1:"),
      file("- a\n- b\n", "job.yaml:1:1"),
      file("just words", "job.yaml:1:1"),
      file("logging:\n  level: [1, 2]\n", "job.yaml:2:10"),
      file("logging:\n  level: INFO\n  level: INFO\n", "job.yaml:3:3"),
      file("logging: {level: \"\"}\n", "logging.level"),
      file("launcher:\n  num_proc: -2\n", "job.yaml:2: launcher.num_proc: -2"),
      file("launcher: {timeout_seconds: " + kLong + "}\n", "10000 characters"),
      file("launcher: {color: \"\\e[31m\"}\n", "\\x1b"),
      file("a: &a [*a]\n", "job.yaml:1"),
      file("&a a: *b\n", "job.yaml:1"),
      file(std::string("\x00\x01\x02", 3), "job.yaml:"),
      file(std::string(5'000, '['), "job.yaml:"),
  };
}

TEST(BadInput, IsOneShortPrintableSentenceThatNamesIt) {
  for (const Input& c : BadInput()) {
    Result<ParsedCommandLine> line = Parse(c);
    ASSERT_FALSE(line.ok()) << "accepted, but should name: " << c.named;
    const std::string& message = line.status().message();
    EXPECT_EQ(line.status().code(), Code::kInvalidArgument) << message;
    EXPECT_NE(message.find(c.named), std::string::npos) << message << "\nshould name " << c.named;
    EXPECT_LT(message.size(), 500u) << message;
    for (char byte : message) {
      EXPECT_FALSE(std::iscntrl(static_cast<unsigned char>(byte))) << message;
    }
  }
}

// Input that is odd, but fine.
TEST(BadInput, WhatOnlyLooksBadIsAccepted) {
  const Input fine[] = {
      {{"-np", "1", "--config-file", "job.yaml", "a"}, "", ""},
      {{"-np", "1", "--config-file", "job.yaml", "a"}, "", "# nothing but words\n"},
      {{"-np", "1", "--config-file", "job.yaml", "a"}, "", "---\n...\n"},
      {{"-np", "1", "--config-file", "job.yaml", "a"},
       "",
       "\"\": x\n"},  // many settings have no key
      {{"-np", "1", "--config-file", "job.yaml", "a"}, "", "!!map : ~}\n# end"},
      {{"-np", "1", "--config-file", "job.yaml", "a"}, "", "logging:\n"},
      {{"-np", "1", "--", "-odd"}, ""},
      {{"-np", "1", "a"}, "", "", "HOROVOD_LOG_LEVEL="},
  };
  for (const Input& c : fine) {
    Result<ParsedCommandLine> line = Parse(c);
    EXPECT_TRUE(line.ok()) << line.status().message();
  }
}

}  // namespace
}  // namespace hvd
