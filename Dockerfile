# scripts/demo and scripts/test in a container, see docs/installation.md. Not built by us yet.
ARG ROS_DISTRO=jazzy
FROM ros:${ROS_DISTRO}-ros-base
SHELL ["/bin/bash", "-c"]
WORKDIR /graph_depth_refiner
COPY package.xml .
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3-venv \
    && rosdep update --rosdistro "$ROS_DISTRO" \
    && rosdep install --from-paths . --ignore-src -y \
    && rm -rf /var/lib/apt/lists/*
COPY . .
# kernels for the processor that builds; another one compiles its own
RUN source "/opt/ros/$ROS_DISTRO/setup.bash" \
    && scripts/run python -m graph_depth_refiner warm-up
# the entry point of the image sources ROS 2
CMD ["scripts/demo"]
