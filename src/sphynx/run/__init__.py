"""Run folders: what a long piece of work leaves behind, how it is stopped, resumed and watched."""
