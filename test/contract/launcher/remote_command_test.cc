// What is typed on another host, given to a real shell.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "launcher/ssh_command.h"

namespace hvd {
namespace {

std::string OutputOf(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  ::pclose(pipe);
  return text;
}

TEST(ShellWord, IsOneWordForAShellWhateverIsInIt) {
  for (const std::string word : {"plain", "two words", "it's", "$HOME `id` \\ \"", "a\nb", ""})
    EXPECT_EQ(OutputOf("printf %s " + ShellWord(word)), word);
}

TEST(RemoteAgentCommand, GreetsAndBecomesTheProgramAtOurPath) {
  // "echo" stands for hvdrun: it shows its arguments.
  EXPECT_EQ(OutputOf(RemoteAgentCommand("/bin/echo", "0123")),
            AgentGreeting("0123") + "agent --job 0123\n");
}

TEST(RemoteAgentCommand, SaysWhereItHasLooked) {
  EXPECT_EQ(OutputOf("PATH=/bin:/usr/bin; (" + RemoteAgentCommand("/no/such/hvdrun", "1") +
                     ") 2>&1; echo $?"),
            "hvdrun is neither at /no/such/hvdrun nor on PATH\n127\n");
}

}  // namespace
}  // namespace hvd
