#include "cli/commands.h"

int main(int argc, char** argv) { return helio::cli::run_program({argv + (argc > 0 ? 1 : 0), argv + argc}); }
