"""Preparing data of TensorFlow in processes of their own."""
