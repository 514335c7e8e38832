#include "control/driver_output.h"

#include <gtest/gtest.h>

namespace helio::control {
namespace {

TEST(DriverOutput, IsFoundInRaysMessage) {
  EXPECT_EQ(output_in("Job entrypoint command failed with exit code 1, last available logs (truncated to 20,000 chars):\na\nb\n"),
            "a\nb\n");
  EXPECT_EQ(output_in("Job entrypoint command failed with exit code 1. No logs available."), "");
  EXPECT_EQ(output_in(""), "");
}

TEST(DriverOutput, AReasonIsTheExceptionThatATracebackEndsWith) {
  EXPECT_EQ(
      reason_in("Traceback (most recent call last):\n  File \"x.py\", line 3, in <module>\nModuleNotFoundError: No module named 'nope'\n"),
      "ModuleNotFoundError: No module named 'nope'");
  EXPECT_EQ(reason_in("ray.exceptions.RayTaskError(ValueError): \x1b[36mray::f()\x1b[39m (pid=1)\n  File \"x.py\", line 5, in f\n"
                      "ValueError: boom in the task\n(raylet) spilled\n\n"),
            "ValueError: boom in the task");
  EXPECT_EQ(reason_in("\x1b[31mmypkg.errors.DataError: bad\x1b[0m\r\n"), "mypkg.errors.DataError: bad");
  EXPECT_EQ(reason_in("working\nKeyboardInterrupt"), "KeyboardInterrupt");
}

TEST(DriverOutput, OtherwiseItIsTheLastLine) {
  EXPECT_EQ(reason_in("one\nmain.sh: line 3: nosuch: command not found\n\n"),
            "its last line is: main.sh: line 3: nosuch: command not found");
  EXPECT_EQ(reason_in(" 10%|#  |\r 20%|## |\n"), "its last line is:  20%|## |");
  EXPECT_EQ(reason_in("Note: all is well"), "its last line is: Note: all is well");
  EXPECT_EQ(
      reason_in("2026-11-30 11:01:54,007\tINFO job_manager.py:581 -- Runtime env is setting up.\nRunning entrypoint for job j-1: false\n"),
      "");
  EXPECT_EQ(reason_in("\n \n"), "");
  EXPECT_EQ(reason_in(""), "");
  EXPECT_EQ(reason_in(std::string(199, 'x') + "\u00e9" + "yz"), "its last line is: " + std::string(199, 'x') + "\u2026");
}

TEST(DriverOutput, ATailHasWholeLines) {
  EXPECT_EQ(tail_of("one\ntwo\nthree\n", 9), "three");
  EXPECT_EQ(tail_of("one\ntwo\n", 100), "one\ntwo");
  EXPECT_EQ(tail_of("one\na line that is too long", 8), "too long");
}

}  // namespace
}  // namespace helio::control
