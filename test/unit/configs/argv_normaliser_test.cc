#include "configs/argv_normaliser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hvd {
namespace {

using Args = std::vector<std::string>;

// "num-proc=4 verbose=on | python t.py", or the message.
std::string Normal(const Args& args) {
  Result<NormalisedArgv> argv = NormaliseArgv(args, SettingRows());
  if (!argv.ok()) return argv.status().message();
  std::string text;
  for (const GivenOption& option : argv->options) {
    text += std::string(option.row->name) + (option.value ? "=" + *option.value : "") + " ";
  }
  text += "|";
  for (const std::string& word : argv->command) text += " " + word;
  return text;
}

struct Spelling {
  Args args;
  std::string_view expected;
};

TEST(ArgvNormaliser, UnderstandsEverySpelling) {
  const Spelling cases[] = {
      {{}, "|"},
      {{"-np", "4", "python", "t.py"}, "num-proc=4 | python t.py"},
      {{"-np=4", "python"}, "num-proc=4 | python"},
      {{"--num-proc", "4", "a"}, "num-proc=4 | a"},
      {{"--num-proc=4", "a"}, "num-proc=4 | a"},
      {{"--num-p", "4", "a"}, "num-proc=4 | a"},
      {{"--start-t=5", "a"}, "start-timeout=5 | a"},
      {{"--verb", "a"}, "verbose=on | a"},
      {{"--no-verb", "a"}, "verbose=off | a"},
      {{"--config-file=a=b.yaml", "a"}, "config-file=a=b.yaml | a"},
      {{"-np", "2", "-np", "3", "a"}, "num-proc=2 num-proc=3 | a"},
      {{"-np", "-3", "a"}, "num-proc=-3 | a"},
      {{"-np", "2", "a", "-np", "9", "--verbose", "--", "-x"},
       "num-proc=2 | a -np 9 --verbose -- -x"},
      {{"-np", "2", "--", "-odd", "--"}, "num-proc=2 | -odd --"},
      {{"-np", "2", "--"}, "num-proc=2 |"},
      {{"--blacklist-cooldown-range", "10", "100", "a", "b"},
       "blacklist-cooldown-range=10 100 | a b"},
      {{"--blacklist-cooldown-range=10,100", "a", "b"}, "blacklist-cooldown-range=10,100 | a b"},
      {{"-"}, "| -"},
      {{"", "x"}, "|  x"},
      {{"-h", "--bogus"}, "brief-help |"},
      {{"--help", "hosts", "-np"}, "help | hosts"},
      {{"-v", "--bogus"}, "version |"},
  };
  for (const Spelling& c : cases) EXPECT_EQ(Normal(c.args), c.expected);
}

TEST(ArgvNormaliser, RefusesInOneSentence) {
  const Spelling cases[] = {
      {{"--verbsoe", "a"}, "unknown option '--verbsoe': did you mean --verbose?"},
      {{"-pn", "2", "a"}, "unknown option '-pn': did you mean -np?"},
      {{"-3"}, "unknown option '-3': hvdrun --help lists all options"},
      {{"--zzzzzzzzzz"}, "unknown option '--zzzzzzzzzz': hvdrun --help lists all options"},
      {{"--ver"}, "--ver can mean several options: write one of --verbose, --version in full"},
      {{"-np"},
       "-np needs a value, but nothing follows it: the number of processes, for example -np 2"},
      {{"-np", "--verbose", "a"},
       "-np needs a value, but '--verbose' follows it: the number of processes, for example -np 2"},
      {{"-np", "--", "a"},
       "-np needs a value, but '--' follows it: the number of processes, for example -np 2"},
      {{"-np", "", "a"},
       "-np needs a value, but an empty text is none: the number of processes, for example -np 2"},
      {{"-np=", "a"},
       "-np needs a value, but an empty text is none: the number of processes, for example -np 2"},
      {{"--verbose=1"}, "--verbose takes no value, but '1' was given: write --verbose alone"},
  };
  for (const Spelling& c : cases) EXPECT_EQ(Normal(c.args), c.expected);
}

TEST(ArgvNormaliser, LongAndDirtyTokensStayShortAndPrintable) {
  std::string message = Normal({"--" + std::string(10'000, 'x')});
  EXPECT_LT(message.size(), 200u);
  EXPECT_EQ(Normal({"--\x1b[31m\n"}),
            "unknown option '--\\x1b[31m\\n': hvdrun --help lists all options");
}

}  // namespace
}  // namespace hvd
