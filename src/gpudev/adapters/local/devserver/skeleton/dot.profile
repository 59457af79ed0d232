# Read by login shells. Yours to change: gpu-dev writes it once, when the home is new.
if [ -d "$HOME/.local/bin" ]; then
    PATH="$HOME/.local/bin:$PATH"
fi
# Without a sandbox, the ssh, scp and sftp that know the other nodes of a gang by name.
if [ -n "$GPU_DEV_PROGRAMS" ]; then
    PATH="$GPU_DEV_PROGRAMS:$PATH"
fi
if [ -n "$BASH_VERSION" ] && [ -f "$HOME/.bashrc" ]; then
    . "$HOME/.bashrc"
fi
