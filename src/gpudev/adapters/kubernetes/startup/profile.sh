# Login shells of some distributions begin with a PATH of their own; this is the image's again.
if [ -r /run/gpu-dev/path ]; then
    PATH=$(cat /run/gpu-dev/path)
    export PATH
fi
